"""The HTML that GT's objects show in notebooks, as tests read it."""

from html.parser import HTMLParser

#: The elements, and their attributes, of everything but timelines.
ELEMENTS = {"div", "p", "pre", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"class", "scope", "style"}
WITHOUT_END = {"img"}


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes, self.texts = [], set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)


def read(html: str) -> _Reader:
    """Return the elements, attributes and texts of HTML whose elements all end."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open, reader.open
    return reader


def texts_of(html: str) -> list[str]:
    """Return the texts of HTML, which has only plain elements and one around all."""
    reader = read(html)
    assert reader.seen <= ELEMENTS, reader.seen
    assert reader.attributes <= ATTRIBUTES, reader.attributes
    # Jupyter shows no formulas in it.
    assert html.startswith('<div class="tex2jax_ignore mathjax_ignore">'), html[:80]
    return reader.texts
