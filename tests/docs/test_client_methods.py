"""The table of the Python client's methods."""

from __future__ import annotations

import re

from almanac_client import Almanac
from almanac_client.resources import Resource
from tests.docs.fences import ROOT

ROW = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+) \| (.*`[a-z_]+`.*) \|$", re.MULTILINE)


def test_the_table_has_every_method_of_every_resource():
    text = (ROOT / "docs/reference/clients.md").read_text()
    table = text.split("| resource | methods |")[1].split("\n\n")[0]
    written = {
        resource: set(re.findall(r"`(\w+)`", methods))
        for resources, methods in ROW.findall(table)
        for resource in re.findall(r"`(\w+)`", resources)
    }

    with Almanac("http://127.0.0.1:9", "key") as almanac:
        resources = {name: value for name, value in vars(almanac).items() if isinstance(value, Resource)}
    assert written == {
        name: {each for each in vars(type(resource)) if not each.startswith("_")}
        for name, resource in resources.items()
    }
