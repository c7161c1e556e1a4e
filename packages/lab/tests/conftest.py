"""A browser for the pages of labels."""

from support.fixtures import browser as browser
from support.fixtures import watched as watched
