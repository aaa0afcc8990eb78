"""Settings: how texts are linked, defined once for Python, the command line, the server and recipes.

A field's type, limits and description stand here and nowhere else. From them come the checks, the options of the
command line with their help (cli/options.py), the JSON schema of the server, and the reading of TOML.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from deixis.errors import InputError

__all__ = ["Find", "Order", "Precision", "Released", "Settings", "SettingsModel", "Splitting"]

Order = Literal["local", "natural", "confidence"]
Splitting = Literal["simple", "overlapping", "per_mention"]
Precision = Literal["fp32", "bf16", "int8"]
Released = Literal["2021", "2022"]
Find = Literal["names", "all"]


class SettingsModel(BaseModel):
    """Checked settings that never change; a wrong value or an unknown name is an `InputError` of one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InputError(_sentence(type(self), error)) from None

    @classmethod
    def parse(cls, name: str, text: str) -> Any:
        """Read the value of a field from a text, as it comes from a command line.

        Examples:
            >>> Settings.parse("commit", "0.9")
            0.9
        """
        if name not in cls.model_fields:
            raise InputError(_unknown(cls, name))
        field = cls.model_fields[name]
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        try:
            return TypeAdapter(kind).validate_strings(text)
        except ValidationError:
            raise InputError(f"{name} is {text[:60]!r}; expected {expected(cls, name)}") from None

    def changed(self, **changes: Any) -> Self:
        """Return a copy with other values, checked like the first.

        Examples:
            >>> Settings(order="local").changed(top=10)
            Settings(order='local', top=10)
        """
        return type(self)(**(self.given() | changes)) if changes else self

    def given(self) -> dict[str, Any]:
        """Return the values that are not the defaults."""
        return {name: value for name, value in self if value != type(self).model_fields[name].default}

    def __repr_args__(self) -> Any:
        return self.given().items()


class Settings(SettingsModel):
    """How mentions are disambiguated; the defaults follow the paper's text.

    Examples:
        >>> Settings(order="natural", top=10)
        Settings(order='natural', top=10)
        >>> Settings(order="sideways")
        Traceback (most recent call last):
        deixis.errors.InputError: order is 'sideways'; expected one of local, natural, confidence
    """

    order: Annotated[Order, Field(description="The order in which mentions are decided.")] = "confidence"
    windows: Annotated[
        Splitting | None,
        Field(
            description="How a document over 510 word pieces is split; if not given, per_mention as in the paper, and "
            "for plain texts overlapping."
        ),
    ] = None
    commit: Annotated[
        Literal["one"] | Annotated[float, Field(gt=0, le=1)],
        Field(description="Decide 'one' mention a step, or also all of at least this probability."),
    ] = "one"
    top: Annotated[
        Annotated[int, Field(ge=1)] | None,
        Field(description="Candidates of a mention that take part, by prior; lists without priors are not cut."),
    ] = 30
    prior: Annotated[
        Annotated[float, Field(ge=0)] | None,
        Field(
            description="Add this weight times log p(e|m) to the scores; if not given, the model's own for plain "
            "texts, else 0 (the paper)."
        ),
    ] = None
    answer_threshold: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None,
        Field(
            description="Leave a mention open under this probability; if not given, the model's own for plain texts, "
            "else never. Later steps still see the rejected answer."
        ),
    ] = None
    find: Annotated[
        Find, Field(description="Which mentions are found in plain texts: 'names', or 'all' that Wikipedia would link.")
    ] = "names"
    released: Annotated[
        Released | None,
        Field(description="Do as the authors' released code of this year does where it differs from the paper's text."),
    ] = None
    evidence: Annotated[
        bool | None,
        Field(
            description="Let probabilities say that none of the candidates may be meant, by how well an answer fits "
            "beside arbitrary entities; if not given, for plain texts where the model was calibrated for it."
        ),
    ] = None
    trace: Annotated[bool, Field(description="Keep the probabilities of every step.")] = False


def _sentence(settings: type[SettingsModel], error: ValidationError) -> str:
    """Say in one sentence what is wrong with the first wrong field, and what was expected."""
    problem = error.errors(include_url=False)[0]
    name = str(problem["loc"][0]) if problem["loc"] else settings.__name__
    if problem["type"] == "extra_forbidden":
        return _unknown(settings, name)
    if problem["type"] == "missing":
        return f"{name} is missing"
    value = problem["input"]
    shown = repr(value) if isinstance(value, str) else str(value)
    return f"{name} is {shown[:60]}; expected {expected(settings, name)}"


def _unknown(settings: type[SettingsModel], name: str) -> str:
    return f"there is no setting {name!r}; expected one of {', '.join(settings.model_fields)}"


def expected(settings: type[SettingsModel], name: str) -> str:
    """Return in words what a field takes, read from its JSON schema."""
    schema = settings.model_json_schema()["properties"][name]
    return " or ".join(_alternative(part) for part in schema.get("anyOf", [schema]))


_KINDS = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "a text"}


def _alternative(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return _alternative(schema["items"])
    if "const" in schema:
        return repr(schema["const"])
    if schema.get("type") == "null":
        return "nothing"
    words = _KINDS.get(schema.get("type", ""), f"a value of type {schema.get('type', 'any')}")
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f"{words} from {low:g} to {high:g}"
    limits = [f"of at least {low:g}"] if low is not None else [f"above {above:g}"] if above is not None else []
    limits += [f"at most {high:g}"] if high is not None else [f"below {below:g}"] if below is not None else []
    return " ".join([words, *([" and ".join(limits)] if limits else [])])
