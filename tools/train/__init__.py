"""Estimators and losses as pure maths, and the local trainer that samples, learns, watches and resumes.

Torch is imported only by the modules that train: `tools.train.trainer`, `tools.train.learner`.
"""

from tools.train.config import GspoConfig as GspoConfig
from tools.train.config import load_config as load_config
from tools.train.config import make_config as make_config
