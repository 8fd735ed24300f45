"""Check that every link of the built site that stays within it leads somewhere."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what the tag links to, and how it can be linked to."""
        attrs = dict(attrs)
        self.links += [attrs[name] for name in ("href", "src") if attrs.get(name)]
        self.anchors |= {attrs[name] for name in ("id", "name") if attrs.get(name)}


def dead_links(folder):
    """Return a list of (page, link) of links that lead nowhere."""
    pages = {
        path.resolve(): _Page(path)
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts  # the theme's own
    }
    return [
        (path.relative_to(folder.resolve()), link)
        for path, page in pages.items()
        for link in page.links
        if not _leads_somewhere(path, link, pages)
    ]


def _leads_somewhere(path, link, pages):
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target not in pages:
        return target.is_file()
    return parts.fragment in ("", "top") or unquote(parts.fragment) in pages[target].anchors


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]))
    for page, link in found:
        print(f"{page}: {link} leads nowhere")
    sys.exit(bool(found))
