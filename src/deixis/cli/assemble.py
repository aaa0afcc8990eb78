"""`deixis assemble`: a model's entities and the names of a store become one folder of knowledge."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from deixis.cli.options import ModelOutput

__all__ = ["assemble"]


def assemble(
    model: Annotated[Path, typer.Argument(help="The model folder, of training or of an earlier deixis.")],
    output: ModelOutput,
    names: Annotated[
        Path | None, typer.Option(help="The store of names; if not given, the one that an earlier deixis put there.")
    ] = None,
    redirects: Annotated[
        list[Path] | None, typer.Option(help="Lines from<TAB>to: other titles, by which entities are known too.")
    ] = None,
    wikidata: Annotated[Path | None, typer.Option(help="Lines title<TAB>id: Wikidata ids, told in results.")] = None,
    titles: Annotated[
        Path | None,
        typer.Option(help="All titles of the wiki, one a line: a name that is nothing but a title is answered by it."),
    ] = None,
) -> None:
    """Give a model names: write a model folder whose entities, names, other titles and rows have one number.

    Names of the store that mean no entity of the model stay behind. A folder of an earlier deixis is converted.

    Examples:

        deixis assemble trained --names store --redirects redirects.tsv -o model

        deixis assemble trained --names store --titles titles.txt.xz -o model

        deixis assemble old-model -o model
    """
    from deixis.artefacts import digest_file, read_lines
    from deixis.cli.terminal import print_counts, size_and_digest
    from deixis.corpus.counting import gather_redirects
    from deixis.datasets.dataset import decoded
    from deixis.folder.model_folder import assemble_folder
    from deixis.knowledge.entities import read_wikidata
    from deixis.knowledge.title_filter import TitleFilter

    given = [*(redirects or []), *([wikidata] if wikidata else []), *([titles] if titles else [])]
    with TemporaryDirectory() as scratch:
        title_filter = None
        if titles is not None:
            title_filter = Path(scratch) / "titles.filter"
            TitleFilter.build(decoded(raw, titles, line) for line, raw in read_lines(titles)).save(title_filter)
        manifest = assemble_folder(
            model,
            output,
            names=names,
            redirects=gather_redirects([], redirects or []),
            title_filter=title_filter,
            wikidata=None if wikidata is None else read_wikidata(wikidata),
            parents={path.name: digest_file(path) for path in given},
        )
    print_counts(manifest.counts, output, size_and_digest(output, manifest))
