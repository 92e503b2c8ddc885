"""The connections of Spark's tasks, where a test runs tasks in its own process."""


def close_task_clients() -> None:
    """Close what `client_of` keeps open from task to task, as the end of a Python worker does."""
    from strandline.spark.reading import split_reading

    while split_reading._CLIENTS:
        _, client = split_reading._CLIENTS.popitem()
        client.close()
