"""Settings are checked where they are made, and say what was expected."""

from __future__ import annotations

from typing import Any

import pytest

from deixis.errors import InputError
from deixis.settings import Settings


def test_defaults_are_the_paper() -> None:
    settings = Settings()
    assert (settings.order, settings.commit, settings.top, settings.prior) == ("confidence", "one", 30, None)
    assert settings.given() == {}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"order": "sideways"}, "order is 'sideways'; expected one of local, natural, confidence"),
        ({"top": 0}, "top is 0; expected a whole number of at least 1 or nothing"),
        ({"top": "5"}, "top is '5'; expected a whole number of at least 1 or nothing"),
        ({"top": True}, "top is True; expected a whole number of at least 1 or nothing"),
        ({"commit": 2}, "commit is 2; expected 'one' or a number above 0 and at most 1"),
        ({"commit": "two"}, "commit is 'two'; expected 'one' or a number above 0 and at most 1"),
        ({"prior": float("inf")}, "prior is inf; expected a number of at least 0 or nothing"),
        ({"answer_threshold": 1.5}, "answer_threshold is 1.5; expected a number from 0 to 1 or nothing"),
        ({"trace": "yes"}, "trace is 'yes'; expected true or false"),
        ({"carry": True}, "there is no setting 'carry'; expected one of order, windows"),
    ],
)
def test_wrong_values_are_refused_in_one_sentence(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        Settings(**values)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_changes_are_checked_like_the_first_values() -> None:
    settings = Settings(order="local").changed(top=5)
    assert settings.given() == {"order": "local", "top": 5}
    with pytest.raises(InputError, match="top is -1"):
        settings.changed(top=-1)


def test_texts_are_read_as_the_type_of_their_field() -> None:
    assert Settings.parse("commit", "0.9") == 0.9
    assert Settings.parse("commit", "one") == "one"
    assert Settings.parse("top", "7") == 7
    assert Settings.parse("trace", "true") is True
    with pytest.raises(InputError, match="top is 'many'; expected a whole number"):
        Settings.parse("top", "many")
    with pytest.raises(InputError, match="there is no setting 'bottom'"):
        Settings.parse("bottom", "1")


def test_settings_do_not_change() -> None:
    with pytest.raises(Exception, match="frozen"):
        Settings().order = "local"
