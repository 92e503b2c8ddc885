"""The tier of one partition: what each bucket holds, as the group's log says.

Source: decision 0057."""
