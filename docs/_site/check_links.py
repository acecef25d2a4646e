"""Look for links of a built site that lead nowhere: `python check_links.py FOLDER`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places in it that links can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if name in ("href", "src") and value:
                self.links.add(value)


def broken_links(folder: Path) -> list[str]:
    """Return a sentence for every link to a page, a file or a place that is not there."""
    written = (path for path in folder.rglob("*.html") if "_static" not in path.parts)
    pages = {path.resolve(): Page(path) for path in sorted(written)}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{path.relative_to(folder.resolve())}: {link} does not exist")
            elif parts.fragment and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{path.relative_to(folder.resolve())}: {link} has no such place")
    return found


if __name__ == "__main__":
    broken = broken_links(Path(sys.argv[1]))
    print("\n".join(broken) or "No link inside the site is broken.")
    sys.exit(bool(broken))
