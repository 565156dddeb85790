"""A page as one HTML file: a template, a style and a script of a package, with what every page has.

A browser runs the page's own style and script alone: their hashes are in its Content-Security-Policy.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from reassign.core.model.progress import duration
from reassign.page import numbers

SHARED = "reassign.page"
JSON: Mapping[str, Any] = {"sort_keys": True, "separators": (",", ":"), "allow_nan": False}


def rendered(package: str, **values: Any) -> Iterator[str]:
    """Yield the parts of a package's page, made of these values by its report.html.jinja and report.css.

    Its report.js, if there is one, is the page's script.
    """
    style = _text(SHARED, "page.css") + _text(package, "report.css")
    script = _text(package, "report.js")
    scripts = f"script-src '{_hash(script)}'; " if script else ""
    return (
        _environment(package)
        .get_template("report.html.jinja")
        .generate(
            **values,
            style=Markup(style),
            script=Markup(script),
            policy=f"default-src 'none'; style-src '{_hash(style)}'; {scripts}base-uri 'none'; form-action 'none'",
        )
    )


def as_json(value: Any) -> Markup:
    """Return JSON as a page's template writes it: a browser takes nothing in it for markup."""
    return htmlsafe_json_dumps(value, **JSON)


def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(SHARED, ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = JSON
    environment.filters |= {
        "count": numbers.count,
        "size": numbers.size,
        "moment": numbers.moment,
        "duration": duration,
    }
    environment.globals |= {"counted": numbers.counted}
    return environment


def _text(package: str, name: str) -> str:
    file = files(package).joinpath(name)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
