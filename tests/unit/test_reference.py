"""The pages that come from the code are what the code says."""

import pytest
from docs.made import FOLDER, pages

PAGES = pages()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_the_code_says(page: str) -> None:
    assert (FOLDER / page).read_text() == PAGES[page], "run `make crds`"
