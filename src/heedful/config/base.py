"""Configuration: frozen, validated models from TOML files and dotted overrides.

Every configurable part of heedful defines a subclass of `Config` beside the code that reads it; this module depends on
none of them. The error for an unknown key, a wrong type or a value out of range names the dotted path of the key, and
for an unknown key also suggests a known one.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from heedful.config.renamed import with_new_keys
from heedful.errors import ConfigError, DamagedFile, did_you_mean
from heedful.files.bounded_read import parse_toml, read_text
from heedful.files.formats import SETTINGS_FORMAT

Tree = dict[str, Any]
MOST_SIZE: Final = 1 << 20
"""Upper bound of the sizes of a model: widths of layers, numbers of heads and positions."""
MOST_STEPS: Final = 10**12
"""Upper bound of the counts of a training: steps, epochs, tokens."""


class Config(BaseModel):
    """Frozen, strict configuration: unknown keys are errors, "10" is not 10, and numbers are finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True, allow_inf_nan=False)

    @property
    def unused_sections(self) -> frozenset[str]:
        """Names of fields that have no effect beside the others, and are not written unless they were set."""
        return frozenset()


_AS_BY_DEFAULT: Final = "# as by default:"
ConfigType = TypeVar("ConfigType", bound=Config)


def read_toml(path: Path, is_told: bool = False) -> Tree:
    """Read a TOML file.

    Args:
        path: the file.
        is_told: whether to warn of old names of settings, where the file is the user's.

    Returns:
        The content as nested dictionaries, without the format version; settings by their new names.

    Raises:
        ConfigError: the file does not exist or is not TOML, or it has a setting by its old and its new name.
        NewerFormat: a newer heedful wrote it.
    """
    try:
        tree = parse_toml(read_text(path))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such configuration file") from None
    except DamagedFile as error:
        raise ConfigError(str(error)) from None
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    return with_new_keys(SETTINGS_FORMAT.strip(path, tree), is_told)


def parse_overrides(settings: Sequence[str]) -> Tree:
    """Parse ``["training.steps=10"]`` into nested dictionaries.

    A value is parsed as TOML; a value that is not valid TOML is taken as a string, so quotes can be omitted.

    Args:
        settings: strings of the form ``dotted.key=value``.

    Raises:
        ConfigError: a setting has no ``=`` or no key.

    Example:
        >>> parse_overrides(["training.steps=10", "model.kind=rnnsearch"])
        {'training': {'steps': 10}, 'model': {'kind': 'rnnsearch'}}
    """
    tree: Tree = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {setting!r}: expected key.path=value, such as training.max_steps=1000")
        try:
            value = parse_toml(f"value = {text}")["value"]
        except ValueError:
            value = text
        *parents, leaf = key.strip().split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ConfigError(f"--set {setting!r}: {parent!r} already has a value and cannot have keys below it")
        node[leaf] = value
    return tree


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """Merge two trees, table by table; values of `over` take precedence.

    Returns:
        New nested dictionaries.

    Example:
        >>> merge({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
        {'a': {'x': 1, 'y': 3}}
    """
    merged = dict(base)
    for key, value in over.items():
        known = merged.get(key)
        merged[key] = merge(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return merged


def validate(config: type[ConfigType], tree: Mapping[str, Any], where: str = "") -> ConfigType:
    """Build a configuration from nested dictionaries, or raise a one-line error.

    Args:
        where: dotted path of `tree` in the whole configuration, for messages.

    Raises:
        ConfigError: an unknown key, a wrong type or a value out of range.
    """
    try:
        # Through JSON, because strict mode then accepts TOML's arrays as tuples, but still refuses "10" for 10.
        text = json.dumps(tree)
    except TypeError as error:
        raise ConfigError(f"{where or 'configuration'}: a value has no JSON form: {error}") from None
    try:
        return config.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(_explain(config, error, where)) from None


_WORDING: Final = {
    "missing": "has no value",
    "bool_type": "expected true or false",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "string_type": "expected a text in quotes",
    "tuple_type": "expected a list in brackets",
    "list_type": "expected a list in brackets",
    "dict_type": "expected a table of keys",
    "model_type": "expected a table of keys",
    "model_attributes_type": "expected a table of keys",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected {ge} or more",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected {le} or less",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
    "union_tag_invalid": "expected a kind among {expected_tags}",
    "union_tag_not_found": "expected a table with a kind",
    "too_short": "expected {min_length} values or more",
    "too_long": "expected {max_length} values or fewer",
}
"""Messages by type of pydantic's error."""


def _explain(config: type[Config], error: ValidationError, where: str) -> str:
    first = error.errors()[0]
    path, known = _resolve_path(config, [str(part) for part in first["loc"]])
    dotted = ".".join(([where] if where else []) + path) or "configuration"
    if first["type"] == "extra_forbidden":
        return f"{dotted}: unknown key{did_you_mean(path[-1], known)}"
    if first["type"] == "value_error" and "ctx" in first:
        return f"{dotted}: {first['ctx']['error']}"
    message = _WORDING.get(first["type"], "not a valid value").format(**first.get("ctx", {}))
    value = "" if first["type"] == "missing" else f", got {first['input']!r}"
    return f"{dotted}: {message}{value}"


def _resolve_path(config: type[Config], location: Sequence[str]) -> tuple[list[str], list[str]]:
    """Path of keys to an error, without the tags of unions, and the known keys of the table that contains it."""
    candidates: list[type[Config]] = [config]
    path: list[str] = []
    around = candidates
    for part in location:
        fields = [candidate.model_fields[part] for candidate in candidates if part in candidate.model_fields]
        tagged = [candidate for candidate in candidates if candidate.model_fields.keys() >= {"kind"}]
        tagged = [candidate for candidate in tagged if candidate.model_fields["kind"].default == part]
        if not fields and tagged:
            candidates = around = tagged
            continue
        path.append(part)
        around = candidates
        candidates = [option for each in fields for option in _config_classes(each.annotation)] or candidates
    return path, sorted({name for candidate in around for name in candidate.model_fields})


def _config_classes(annotation: Any) -> list[type[Config]]:
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    if get_origin(annotation) is None:
        return []
    return [config_class for option in get_args(annotation) for config_class in _config_classes(option)]


def leaves(tree: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """List the values of a tree of settings.

    Args:
        path: dotted path of the tree itself; empty = the root.

    Returns:
        The dotted path of each value with the value.

    Example:
        >>> leaves({"search": {"beam": 5}})
        [('search.beam', 5)]
    """
    values: list[tuple[str, Any]] = []
    for key, value in tree.items():
        here = f"{path}.{key}" if path else key
        values += leaves(value, here) if isinstance(value, Mapping) else [(here, value)]
    return values


def differences(config: Config, usual: Config | None = None) -> Tree:
    """List the values that differ from the defaults.

    Args:
        usual: configuration of the same class to compare with; None = the defaults of the class.

    Returns:
        Values as JSON has them; a nested configuration is a tree of its own, and missing if nothing in it differs.
    """
    tree: Tree = {}
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        default = (
            field.get_default(call_default_factory=True, validated_data={}) if usual is None else getattr(usual, name)
        )
        if isinstance(value, Config):
            if below := differences(value, default if type(default) is type(value) else None):
                tree[name] = below
        elif value != default:
            tree[name] = config.model_dump(mode="json", include={name})[name]
    return tree


def to_toml(config: Config) -> str:
    """Write a configuration as TOML, every value resolved; in each table what differs from the defaults stands first.

    Returns:
        TOML text from which `read_toml` and `validate` build an equal configuration.
    """
    different = differences(config)
    hidden = config.unused_sections - different.keys()
    return _table(SETTINGS_FORMAT.stamp(config.model_dump(mode="json", exclude={*hidden})), different, ()).lstrip("\n")


def read_differences(path: Path) -> Tree:
    """Read the values of a configuration that differ from the defaults, without the classes that it is made of.

    Args:
        path: file that `to_toml` wrote.

    Returns:
        The values; empty for a file of an earlier version, which does not set them apart.

    Raises:
        ValueError: the file is no TOML.
    """
    chosen, is_default, has_any = list[str](), False, False
    for line in read_text(path).replace("\r\n", "\n").split("\n"):
        is_default = (is_default or line == _AS_BY_DEFAULT) and not line.startswith("[")
        has_any = has_any or is_default
        if not is_default:
            chosen.append(line)
    tree = parse_toml("\n".join(chosen)) if has_any else {}
    return {key: value for key, value in tree.items() if isinstance(value, dict)}


def _table(tree: Tree, different: Tree, path: tuple[str, ...]) -> str:
    values = {key: value for key, value in tree.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in tree.items() if isinstance(value, dict)}
    first = [key for key in values if key in different or key == "kind" or not path]
    rest = [key for key in values if key not in first]
    lines = [f"\n[{'.'.join(path)}]"] if path and values else []
    lines += [f"{key} = {_value(values[key])}" for key in first]
    if rest:
        lines += [_AS_BY_DEFAULT, *(f"{key} = {_value(values[key])}" for key in rest)]
    text = "".join(line + "\n" for line in lines)
    return text + "".join(_table(value, different.get(key, {}), (*path, key)) for key, value in tables.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)
