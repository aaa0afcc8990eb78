"""The model card: CARD.md with the figures of reports that `deixis evaluate sets --json` wrote, none of them typed.

python recipes/default/card.py MODEL REPORT...      # writes MODEL/README.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from string import Template
from typing import Any

import orjson

from deixis.artefacts import MANIFEST, Manifest, write_aside
from deixis.errors import ArtefactError, DeixisError

TEMPLATE = Path(__file__).with_name("CARD.md")
Report = dict[str, Any]


def render(model: Path, reports: list[Report]) -> str:
    """Return the card of a model folder; reports of another folder are refused."""
    manifest = Manifest.load(model / MANIFEST, "model")
    for report in reports:
        if report["model"] != manifest.digest:
            raise ArtefactError(
                f"a report is of the model {str(report['model'])[:12]}, but {model} is {manifest.digest[:12]}; "
                "evaluate this folder"
            )
    config = orjson.loads((model / "config.json").read_bytes())
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        words_see=config["words_see"],
        answer_layers=config["answer_layers"] or config["num_hidden_layers"],
        entities=f"{config['entities'] - 3:,}",
        entity_size=config["entity_size"],
        digest=manifest.digest,
        results=results(reports),
        **{name: manifest.parameters[name] for name in ("table", "encoder")},
    )


def results(reports: list[Report]) -> str:
    """Return the runs of the reports as a table."""
    lines = [
        "| set | candidates | mentions | recall | order | figure | 95 % interval |",
        "|---|---|---:|---:|---|---:|---|",
    ]
    for report in reports:
        for found in report["results"]:
            for run in found["runs"]:
                prior = f", prior {run['prior']:g}" if run.get("prior") else ""
                low, high = (f"{100 * bound:.1f}" for bound in run["interval_95"])
                lines.append(
                    f"| {found['set']} | {found['candidates']} | {run['mentions']:,} | "
                    f"{100 * found['candidate_recall']:.1f} | {run['order']}{prior} | "
                    f"{100 * run[run['measure']]:.1f} | {low}–{high} |"
                )
    return "\n".join(lines)


def write_card(model: Path, reports: list[Report]) -> None:
    """Write the card into the folder."""
    with write_aside(model / "README.md") as file:
        file.write(render(model, reports).encode())


def main() -> int:
    """Write the card of a folder from report files."""
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        write_card(Path(sys.argv[1]), [orjson.loads(Path(name).read_bytes()) for name in sys.argv[2:]])
    except (DeixisError, OSError, ValueError) as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
