"""Where Spark looks for data sources by itself: it imports each package named `pyspark_*` and
registers its `DefaultSource`, so SQL and spark-submit need no line of Python."""

from strandline.spark.source import StrandlineSource as DefaultSource

__all__ = ["DefaultSource"]
