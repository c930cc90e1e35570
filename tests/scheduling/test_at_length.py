"""Every property of this folder once more, with 10 000 examples."""

from importlib import import_module

import pytest
from hypothesis import is_hypothesis_test, settings

MODULES = ["test_intervals", "test_windows", "test_slots", "test_query", "test_written"]
PROPERTIES = [
    pytest.param(test, id=f"{module}::{name}")
    for module in MODULES
    for name, test in vars(import_module(f"tests.scheduling.{module}")).items()
    if name.startswith("test_") and is_hypothesis_test(test)
]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("prove", PROPERTIES)
def test_ten_thousand_examples(prove):
    before = settings.get_current_profile_name()
    settings.load_profile("engine at length")
    try:
        prove()
    finally:
        settings.load_profile(before)
