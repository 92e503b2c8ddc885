"""Where Spark looks for data sources by itself: it imports each package named `pyspark_*`."""
