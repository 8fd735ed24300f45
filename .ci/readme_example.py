"""Print the first Python block of the README."""

import re
from pathlib import Path

readme = Path(__file__).parent.parent / "README.md"
print(re.search(r"```python\n(.*?)```", readme.read_text(), re.S).group(1))
