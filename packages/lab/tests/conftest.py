"""A browser for the pages of labels."""

from support.browser import browser as browser
from support.browser import watched as watched
