"""YAML as people write it: a key that stands twice is an error, not the last one silently taken."""

from __future__ import annotations

from typing import Any

import yaml


class _Once(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> Any:
    """What `yaml.safe_load` gives. Raises yaml.YAMLError for text that is none and for a key that stands twice."""
    return yaml.load(text, Loader=_Once)
