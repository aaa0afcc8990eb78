"""The OpenAPI document is true: whatever it allows, and what it forbids, gets an answer and never a 5xx."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

pytestmark = pytest.mark.slow

POSTED = ("/disambiguate", "/link", "/nif")
CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]

schemathesis.serializer.alias("application/x-turtle", "text/plain")


@pytest.fixture(scope="module")
def described(address: str) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.mark.filterwarnings("ignore")  # schemathesis' own
@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("path", [*POSTED, "/candidates", "/health", "/ready", "/metrics"])
def test_no_server_error(described: schemathesis.BaseSchema, path: str, mode: GenerationMode) -> None:
    operation = described[path]["POST" if path in POSTED else "GET"]
    if mode is GenerationMode.NEGATIVE and path in ("/health", "/ready", "/metrics"):
        return  # they take nothing that could be wrong

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=20 if path in POSTED else 5,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(checks=CHECKS)

    check()
