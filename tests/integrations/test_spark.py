"""The example of docs/batch.md for Spark, with Spark on this machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import heedful

PAGE = Path(__file__).parents[2] / "docs" / "batch.md"
LINES = ["Hello.", "The cat sleeps.", "How old are you?"]
MAIN = """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame([(line,) for line in {lines}], ["english"])
rows = frame.withColumn("french", translate("english")).collect()
print("\\n" + json.dumps([row.french for row in rows]))
spark.stop()
"""


@pytest.mark.slow
def test_the_example_for_spark_translates_a_data_frame(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs pyspark and Java")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example.partition("frame.withColumn")[0] + MAIN.format(lines=LINES), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    translations = json.loads(done.stdout.strip().splitlines()[-1])
    assert translations == heedful.load("en-fr")(LINES)
