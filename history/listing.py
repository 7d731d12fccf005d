"""What lies in a branch that runs are exchanged through: run files by their place, and the rest."""

from dataclasses import dataclass

from perfci.history.places import Place, year_of
from perfci.history.remote import Remote
from perfci.history.text import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A branch as it was fetched; ``tip`` is None where it is not there yet.

    ``files`` are the SHAs of what may be run files. ``foreign`` are the paths of everything else,
    none of which is ever replaced.
    """

    tip: str | None = None
    files: dict[Place, str]
    foreign: frozenset[str] = frozenset()

    def blocks(self, place: Place) -> bool:
        """Whether something that is no run file lies at a place, or where its folder should be."""
        return not self.foreign.isdisjoint((place.path, place.folder))

    def holds(self, place: Place) -> bool:
        """Whether something lies at a place, whatever it is."""
        return place in self.files or self.blocks(place)


def look(remote: Remote, base: str, branch: str) -> Listing:
    """Fetch what lies in a branch, without the files themselves.

    Only the folders of months are looked into: a tree from elsewhere may have no end.
    """
    tip = remote.fetch(branch)
    if tip is None:
        return Listing(files={})
    files: dict[Place, str] = {}
    foreign = set()
    year = year_of(base, branch)
    for each in remote.entries(tip):
        folder = Place.at(f"{each.name}/x.json.gz")
        if folder is None or folder.year != year or not each.is_folder:
            foreign.add(each.name)
            continue
        for entry in remote.entries(each.sha):
            path = f"{each.name}/{entry.name}"
            place = Place.at(path)
            if place is None or not entry.is_file:
                foreign.add(path)
            else:
                files[place] = entry.sha
    return Listing(tip=tip, files=files, foreign=frozenset(foreign))


def shown(branch: str, path: str) -> str:
    """A path in a branch as it is reported."""
    return one_line(f"{branch}:{path}")
