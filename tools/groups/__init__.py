"""Answers of one clip together: contrast, statistics, the first N with contrast. Mining and training both use it."""

from tools.groups.contrast import CONTRAST as CONTRAST
from tools.groups.contrast import Retained as Retained
from tools.groups.contrast import first_n_with_contrast as first_n_with_contrast
from tools.groups.contrast import has_contrast as has_contrast
from tools.groups.contrast import is_scored as is_scored
from tools.groups.contrast import scored as scored
from tools.groups.contrast import spread as spread
from tools.groups.contrast import why_unused as why_unused
from tools.groups.stats import Errors as Errors
from tools.groups.stats import GroupStats as GroupStats
from tools.groups.stats import SetStats as SetStats
from tools.groups.stats import group_stats as group_stats
from tools.groups.stats import set_stats as set_stats
