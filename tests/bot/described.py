"""What a host says of its own interface, as a test file: a request that it does not describe fails the test."""

from __future__ import annotations

import json
import re
from collections.abc import Set
from pathlib import Path
from typing import Any

import jsonschema


class Description:
    """A cut-down OpenAPI document below ``data``; ``everywhere`` are parameters that the client adds to every read."""

    def __init__(self, host: str, name: str, everywhere: Set[str] = frozenset()) -> None:
        self.host = host
        self.document = json.loads((Path(__file__).parent / "data" / name).read_text())
        self.everywhere = everywhere

    def check(self, method: str, path: str, query: Set[str], body: Any) -> None:
        """Fail for a request that the host does not describe. A path may hold quoted slashes."""
        for pattern, item in self.document["paths"].items():
            if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", pattern), path) and method.lower() in item:
                self._check(f"{method} {path}", item[method.lower()], query, body)
                return
        raise AssertionError(f"{self.host} describes no {method} {path}")

    def _check(self, what: str, operation: dict[str, Any], query: Set[str], body: Any) -> None:
        parameters = (self._resolved(p) for p in operation.get("parameters", ()))
        names = {p["name"] for p in parameters if p["in"] == "query"} | self.everywhere
        assert query <= names, f"{what}: {query - names}"
        if what.startswith("GET "):
            return
        if "requestBody" not in operation:
            assert not body, f"{what} takes no body"
            return
        content = self._resolved(operation["requestBody"])
        if body is None and not content.get("required", True):
            return
        schema = content["content"]["application/json"]["schema"]
        jsonschema.validate(body, schema)
        # Hosts ignore what they do not know, so a misspelt property would go unnoticed.
        known = set(schema.get("properties", ()))
        for part in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
            known |= set(part.get("properties", ()))
        assert set(body) <= known, f"{what}: {set(body) - known}"

    def _resolved(self, schema: Any) -> Any:
        if isinstance(schema, dict):
            if "$ref" in schema:
                found = self.document
                for part in schema["$ref"][2:].split("/"):
                    found = found[part]
                return self._resolved(found)
            return {key: self._resolved(value) for key, value in schema.items()}
        return [self._resolved(item) for item in schema] if isinstance(schema, list) else schema
