/* Fills columns with the records of uncompressed batches: the fast twin of
   `spark/decoding/numpy_fill.py`.

   Why:   a reader of columns wants each field of all records together. Python takes about 2 us for
          a record, this takes about 15 ns and copies each byte once.
   How:   fill(records, batches, row, ...) walks the batches of a table of int64:

              start, end       where the records of the batch are in `records`
              count            how many records
              last_delta       the highest offset delta that a record may have
              from_delta, to_delta   records with other offset deltas have no row
              base_offset, base_timestamp
              append_timestamp the time of all its records; INT64_MIN if each has its own
              epoch            of the leader
              walks            0 if its rows follow from this table: offsets are dense then
              crc              that its header says; the caller checks it

          It fills rows of the columns that are not None from `row` on, and returns (fault, which
          batch, which record, rows behind the last, headers). Faults are those of
          `contents.Fault`, and those below. A column of bytes is (ends: int32, bytes, nulls:
          uint8): row i has the bytes from ends[i] to ends[i + 1].
          scan(data, ...) writes such a table: of the batches from a position on, up to the first
          that needs a closer look.
   Safe:  the input is hostile. Each read is behind a comparison with the end of the buffer or of
          the record; all capacities are checked before the first record.
   Built: as `_contents.c` is. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "_module.h"
#include "_varints.h"

#define REVISION 1 /* Of the results; `fill.py` uses a binary of its own revision only. */
#define GIL_RELEASE_BYTES (64 * 1024)
#define HAS_NO_APPEND_TIME INT64_MIN
#define TIMESTAMP_MS_MAX (INT64_MAX / 1000)
#define HEADER_BYTES 61
#define APPEND_TIME_BIT 0x08
#define TRANSACTIONAL_BIT 0x10
#define OFFSET_LIMIT ((int64_t)1 << 62)
#define RECORD_BYTES_MIN 7
#define QUICK_BYTES 16 /* More than `read_usual` reads between two comparisons. */
#define PIECE_BYTES 32
#define SHORT_BYTES 256 /* A multiple of PIECE_BYTES. */

/* The order is that of `contents.Fault`, then that of `fill.Fault`. */
enum fault {
    NONE,
    RECORD_CUT,
    RECORD_BEYOND_BATCH,
    FIELD_CUT,
    FIELD_LENGTH,
    FIELD_BEYOND_RECORD,
    OFFSET_DELTA,
    HEADER_COUNT,
    HEADER_WITHOUT_NAME,
    RECORD_TOO_LONG,
    TRAILING_BYTES,
    TIMESTAMP,
};

struct batch {
    int64_t start, end, count, last_delta, from_delta, to_delta;
    int64_t base_offset, base_timestamp, append_timestamp, epoch, walks, crc;
};

/* Memory of a column, which no other code may resize meanwhile. */
struct memory {
    Py_buffer view;
    int is_held;
};

struct bytes_column {
    int32_t *ends; /* NULL if the column is not asked for. */
    uint8_t *bytes, *nulls;
    const uint8_t *limit; /* The end of `bytes`. */
};

struct columns {
    int64_t *offsets, *timestamps;
    int32_t *epochs, *timestamp_types;
    int32_t *headers_at, *headers_counts;
    struct bytes_column keys, values;
};

struct state {
    const uint8_t *records, *limit; /* `limit`: their end. */
    struct columns columns;
    enum fault fault;
    Py_ssize_t batch, record, row, headers;
};

struct field {
    const uint8_t *bytes;
    int32_t length; /* -1 for null. */
};

/* A field with its length before it. */
static inline enum fault read_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
    if (!read_varint(at, end, &field->length))
        return FIELD_CUT;
    if (field->length < -1)
        return FIELD_LENGTH;
    if (field->length > end - *at)
        return FIELD_BEYOND_RECORD;
    field->bytes = *at;
    if (field->length > 0)
        *at += field->length;
    return NONE;
}

static enum fault skip_headers(const uint8_t **at, const uint8_t *end, int32_t count)
{
    struct field field;
    enum fault fault;
    while (count--) {
        if ((fault = read_field(at, end, &field)) != NONE)
            return fault;
        if (field.length < 0)
            return HEADER_WITHOUT_NAME;
        if ((fault = read_field(at, end, &field)) != NONE)
            return fault;
    }
    return NONE;
}

/* Copies a field; whole pieces of a short one where memory allows, because a call costs as much. */
static inline void copy_field(uint8_t *to, const uint8_t *to_limit, const struct field *field,
                              const uint8_t *limit)
{
    const int32_t length = field->length;
    if (length <= SHORT_BYTES && limit - field->bytes >= SHORT_BYTES &&
        to_limit - to >= SHORT_BYTES) {
        for (int32_t at = 0; at < length; at += PIECE_BYTES)
            memcpy(to + at, field->bytes + at, PIECE_BYTES);
    } else {
        memcpy(to, field->bytes, (size_t)length);
    }
}

/* Fills a row. `limit`: the end of the memory that the field is in. */
static inline void put_field(struct bytes_column *column, Py_ssize_t row,
                             const struct field *field, const uint8_t *limit)
{
    int32_t end = column->ends[row];
    column->nulls[row] = field->length < 0;
    if (field->length > 0) {
        copy_field(column->bytes + end, column->limit, field, limit);
        end += field->length;
    }
    column->ends[row + 1] = end;
}

/* Microseconds since 1970 of a record; 0 if they leave 64 bits. */
static inline int read_time(const struct batch *batch, uint64_t delta, int64_t *microseconds)
{
    int64_t time = batch->append_timestamp;
    if (time == HAS_NO_APPEND_TIME) {
        time = (int64_t)((uint64_t)batch->base_timestamp + delta);
        if (((batch->base_timestamp ^ time) & ((int64_t)delta ^ time)) < 0)
            return 0;
    }
    if (time > TIMESTAMP_MS_MAX || time < -TIMESTAMP_MS_MAX)
        return 0;
    *microseconds = time * 1000;
    return 1;
}

static inline int64_t offset_of(const struct batch *batch, int64_t delta)
{
    return (int64_t)((uint64_t)batch->base_offset + (uint64_t)delta);
}

struct record {
    uint64_t timestamp_delta;
    int32_t offset_delta, headers_count;
    struct field key, value;
    const uint8_t *headers;
};

/* A record without headers whose numbers have at most four bytes, which is the usual one: 0 for any
   other, and for a malformed one. `limit`: the end of readable memory.
   Why: it compares with the end three times, not once for each byte. */
static inline int read_usual(const uint8_t *at, const uint8_t *end, const uint8_t *limit,
                             struct record *record)
{
    uint32_t delta, raw;
    if (limit - at < 2 * QUICK_BYTES)
        return 0;
    at++;
    if (!quick_varint(&at, &delta) || !quick_varint(&at, &raw))
        return 0;
    record->timestamp_delta = (uint64_t)(int64_t)(int32_t)((delta >> 1) ^ (0u - (delta & 1)));
    record->offset_delta = (int32_t)((raw >> 1) ^ (0u - (raw & 1)));
    for (struct field *field = &record->key; field <= &record->value; field++) {
        if (limit - at < QUICK_BYTES || !quick_varint(&at, &raw) || ((raw & 1) && raw != 1))
            return 0;
        field->length = (int32_t)(raw >> 1) - (int32_t)(raw & 1);
        field->bytes = at;
        if (end - at <= (int32_t)(raw >> 1))
            return 0;
        at += raw >> 1;
    }
    record->headers_count = 0;
    record->headers = at + 1;
    return at + 1 == end && *at == 0;
}

/* Any record, from its attributes to its end. */
static enum fault read_any(const uint8_t *at, const uint8_t *end, const struct batch *batch,
                           int64_t delta, struct record *record)
{
    enum fault fault;
    if (at >= end)
        return FIELD_CUT;
    at++; /* The attributes mean nothing yet. */
    if (!read_varlong(&at, end, &record->timestamp_delta) ||
        !read_varint(&at, end, &record->offset_delta))
        return FIELD_CUT;
    if (record->offset_delta <= delta || record->offset_delta > batch->last_delta)
        return OFFSET_DELTA;
    if ((fault = read_field(&at, end, &record->key)) != NONE ||
        (fault = read_field(&at, end, &record->value)) != NONE)
        return fault;
    if (!read_varint(&at, end, &record->headers_count))
        return FIELD_CUT;
    if (record->headers_count < 0 || record->headers_count > end - at)
        return HEADER_COUNT;
    record->headers = at;
    if ((fault = skip_headers(&at, end, record->headers_count)) != NONE)
        return fault;
    return at == end ? NONE : RECORD_TOO_LONG;
}

/* The row of a record; 0 if its time does not fit the column. */
static inline int put_record(struct state *state, const struct batch *batch,
                             const struct record *record)
{
    struct columns *columns = &state->columns;
    Py_ssize_t row = state->row;
    if (columns->timestamps &&
        !read_time(batch, record->timestamp_delta, columns->timestamps + row))
        return 0;
    if (columns->keys.ends)
        put_field(&columns->keys, row, &record->key, state->limit);
    if (columns->values.ends)
        put_field(&columns->values, row, &record->value, state->limit);
    if (columns->offsets)
        columns->offsets[row] = offset_of(batch, record->offset_delta);
    if (columns->headers_at) {
        columns->headers_at[row] = (int32_t)(record->headers - state->records);
        columns->headers_counts[row] = record->headers_count;
        state->headers += record->headers_count;
    }
    state->row = row + 1;
    return 1;
}

/* One record in [at, end); `delta` is that of the record before. */
static inline enum fault fill_record(struct state *state, const struct batch *batch,
                                     const uint8_t *at, const uint8_t *end, int64_t *delta)
{
    struct record record;
    enum fault fault;
    if (!read_usual(at, end, state->limit, &record) || record.offset_delta <= *delta ||
        record.offset_delta > batch->last_delta) {
        if ((fault = read_any(at, end, batch, *delta, &record)) != NONE)
            return fault;
    }
    *delta = record.offset_delta;
    if (record.offset_delta < batch->from_delta || record.offset_delta >= batch->to_delta)
        return NONE;
    return put_record(state, batch, &record) ? NONE : TIMESTAMP;
}

static void walk_batch(struct state *state, const struct batch *batch)
{
    const uint8_t *at = state->records + batch->start, *end = state->records + batch->end;
    int64_t delta = -1;
    int32_t length;
    for (state->record = 0; state->record < batch->count; state->record++) {
        if (!read_varint(&at, end, &length)) {
            state->fault = RECORD_CUT;
            return;
        }
        if (length < 0 || length > end - at) {
            state->fault = RECORD_BEYOND_BATCH;
            return;
        }
        state->fault = fill_record(state, batch, at, at + length, &delta);
        if (state->fault != NONE)
            return;
        at += length;
    }
    if (at != end)
        state->fault = TRAILING_BYTES;
}

/* The rows of a batch with a record at each offset, without looking at them. */
static void fill_dense(struct state *state, const struct batch *batch)
{
    int64_t from = batch->from_delta > 0 ? batch->from_delta : 0;
    int64_t to = batch->to_delta < batch->count ? batch->to_delta : batch->count;
    int64_t time = 0;
    if (from < to && state->columns.timestamps && !read_time(batch, 0, &time)) {
        state->fault = TIMESTAMP;
        return;
    }
    for (int64_t delta = from; delta < to; delta++) {
        if (state->columns.offsets)
            state->columns.offsets[state->row] = offset_of(batch, delta);
        if (state->columns.timestamps)
            state->columns.timestamps[state->row] = time;
        state->row++;
    }
}

static void fill_batches(struct state *state, const struct batch *batches, Py_ssize_t count)
{
    struct columns *columns = &state->columns;
    for (state->batch = 0; state->batch < count; state->batch++) {
        const struct batch *batch = batches + state->batch;
        Py_ssize_t first = state->row;
        state->record = 0;
        if (batch->walks)
            walk_batch(state, batch);
        else
            fill_dense(state, batch);
        if (state->fault != NONE)
            return;
        for (Py_ssize_t row = first; columns->epochs && row < state->row; row++)
            columns->epochs[row] = (int32_t)batch->epoch;
        for (Py_ssize_t row = first; columns->timestamp_types && row < state->row; row++)
            columns->timestamp_types[row] = batch->append_timestamp != HAS_NO_APPEND_TIME;
    }
}

/* Memory to write to, of at least `bytes`; NULL with an exception. */
static void *hold(PyObject *object, struct memory *memory, Py_ssize_t bytes)
{
    if (PyObject_GetBuffer(object, &memory->view, PyBUF_WRITABLE) < 0)
        return NULL;
    memory->is_held = 1;
    if (memory->view.len < bytes) {
        PyErr_Format(PyExc_ValueError, "a column of %zd bytes, not %zd", memory->view.len, bytes);
        return NULL;
    }
    return memory->view.buf;
}

/* The same for a column that may be None; 0 with an exception. */
static int hold_column(PyObject *object, struct memory *memory, Py_ssize_t bytes, void **data)
{
    *data = NULL;
    if (object == Py_None)
        return 1;
    *data = hold(object, memory, bytes);
    return *data != NULL;
}

/* A column of bytes that gets rows from `row` to `rows`, and at most `bytes`. */
static int hold_bytes(PyObject *object, struct memory *memory, Py_ssize_t row, Py_ssize_t rows,
                      Py_ssize_t bytes, struct bytes_column *column)
{
    PyObject *parts[3];
    column->ends = NULL;
    if (object == Py_None)
        return 1;
    if (!PyArg_ParseTuple(object, "OOO:column", parts, parts + 1, parts + 2))
        return 0;
    int32_t *ends = hold(parts[0], memory, (rows + 1) * (Py_ssize_t)sizeof(int32_t));
    if (ends == NULL)
        return 0;
    if (ends[row] < 0 || bytes > INT32_MAX - ends[row]) {
        PyErr_SetString(PyExc_ValueError, "a column of more than 2 GiB");
        return 0;
    }
    column->bytes = hold(parts[1], memory + 1, ends[row] + bytes);
    column->nulls = column->bytes == NULL ? NULL : hold(parts[2], memory + 2, rows);
    if (column->nulls == NULL)
        return 0;
    column->limit = column->bytes + memory[1].view.len;
    column->ends = ends;
    return 1;
}

static void release(struct memory *memories, int count)
{
    for (int at = 0; at < count; at++) {
        if (memories[at].is_held)
            PyBuffer_Release(&memories[at].view);
    }
}

/* How many rows and bytes the batches take at most; 0 with an exception for an impossible one. */
static int measure(const struct batch *batches, Py_ssize_t count, Py_ssize_t records_bytes,
                   Py_ssize_t *rows, Py_ssize_t *bytes)
{
    for (Py_ssize_t at = 0; at < count; at++) {
        const struct batch *batch = batches + at;
        int is_sound = 0 <= batch->start && batch->start <= batch->end &&
                       batch->end <= records_bytes && 0 <= batch->count &&
                       batch->count <= INT32_MAX && batch->last_delta <= INT32_MAX &&
                       *rows <= INT32_MAX && *bytes <= INT32_MAX;
        if (!is_sound) {
            PyErr_Format(PyExc_ValueError, "batch %zd of the table is impossible", at);
            return 0;
        }
        *rows += (Py_ssize_t)batch->count;
        *bytes += (Py_ssize_t)(batch->end - batch->start);
    }
    return 1;
}

#define MEMORIES 12

static int hold_all(PyObject **objects, struct memory *memories, struct columns *columns,
                    Py_ssize_t row, Py_ssize_t rows, Py_ssize_t bytes)
{
    const Py_ssize_t wide = rows * (Py_ssize_t)sizeof(int64_t);
    const Py_ssize_t narrow = rows * (Py_ssize_t)sizeof(int32_t);
    void *data[6];
    for (int at = 0; at < 6; at++) {
        if (!hold_column(objects[at], memories + at, at < 2 ? wide : narrow, data + at))
            return 0;
    }
    columns->offsets = data[0];
    columns->timestamps = data[1];
    columns->epochs = data[2];
    columns->timestamp_types = data[3];
    columns->headers_at = data[4];
    columns->headers_counts = data[5];
    if ((data[4] == NULL) != (data[5] == NULL)) {
        PyErr_SetString(PyExc_ValueError, "headers take two columns");
        return 0;
    }
    return hold_bytes(objects[6], memories + 6, row, rows, bytes, &columns->keys) &&
           hold_bytes(objects[7], memories + 9, row, rows, bytes, &columns->values);
}

static PyObject *fill(PyObject *self, PyObject *arguments)
{
    Py_buffer records, table;
    Py_ssize_t row, bytes = 0;
    PyObject *objects[8], *answer = NULL;
    struct memory memories[MEMORIES];
    struct state state;
    (void)self;
    memset(memories, 0, sizeof memories);
    memset(&state, 0, sizeof state);
    if (!PyArg_ParseTuple(arguments, "y*y*nOOOOOOOO:fill", &records, &table, &row, objects,
                          objects + 1, objects + 2, objects + 3, objects + 4, objects + 5,
                          objects + 6, objects + 7))
        return NULL;
    const struct batch *batches = table.buf;
    Py_ssize_t count = table.len / (Py_ssize_t)sizeof(struct batch), rows = row;
    if (row < 0 || row > INT32_MAX || records.len > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "more than 2 GiB");
    } else if (measure(batches, count, records.len, &rows, &bytes) &&
               hold_all(objects, memories, &state.columns, row, rows, bytes)) {
        state.records = records.buf;
        state.limit = state.records + records.len;
        state.row = row;
        if (bytes >= GIL_RELEASE_BYTES) {
            Py_BEGIN_ALLOW_THREADS
            fill_batches(&state, batches, count);
            Py_END_ALLOW_THREADS
        } else {
            fill_batches(&state, batches, count);
        }
        answer = Py_BuildValue("(innnn)", (int)state.fault, state.batch, state.record, state.row,
                               state.headers);
    }
    release(memories, MEMORIES);
    PyBuffer_Release(&table);
    PyBuffer_Release(&records);
    return answer;
}

struct header_columns {
    struct bytes_column names, values;
    const int32_t *at, *counts;
    Py_ssize_t rows, entry, entries;
};

/* 0 if the headers are not as `fill` found them: one row's behind those of the row before, so that
   they take no more bytes than the records. */
static int put_headers(const uint8_t *start, const uint8_t *end, struct header_columns *columns)
{
    const uint8_t *at = start;
    struct field name, value;
    for (Py_ssize_t row = 0; row < columns->rows; row++) {
        if (columns->counts[row] == 0)
            continue;
        if (columns->at[row] < at - start || columns->at[row] > end - start)
            return 0;
        at = start + columns->at[row];
        for (int32_t count = columns->counts[row]; count > 0; count--) {
            if (columns->entry >= columns->entries || read_field(&at, end, &name) != NONE ||
                name.length < 0 || read_field(&at, end, &value) != NONE)
                return 0;
            put_field(&columns->names, columns->entry, &name, end);
            put_field(&columns->values, columns->entry, &value, end);
            columns->entry++;
        }
    }
    return 1;
}

/* fill_headers(records, at, counts, entry, entries, names, values): the headers of the rows that
   `fill` filled from these records, as two columns of bytes from `entry` on. Returns the entry
   behind the last; raises ValueError if there are more than `entries`. */
static PyObject *fill_headers(PyObject *self, PyObject *arguments)
{
    Py_buffer records, at, counts;
    PyObject *names, *values, *answer = NULL;
    struct memory memories[6];
    struct header_columns columns;
    (void)self;
    memset(memories, 0, sizeof memories);
    memset(&columns, 0, sizeof columns);
    if (!PyArg_ParseTuple(arguments, "y*y*y*nnOO:fill_headers", &records, &at, &counts,
                          &columns.entry, &columns.entries, &names, &values))
        return NULL;
    columns.at = at.buf;
    columns.counts = counts.buf;
    columns.rows = at.len / (Py_ssize_t)sizeof(int32_t);
    if (at.len != counts.len || columns.entry < 0 || columns.entries < columns.entry) {
        PyErr_SetString(PyExc_ValueError, "headers take two columns of the same rows");
    } else if (hold_bytes(names, memories, columns.entry, columns.entries, records.len,
                          &columns.names) &&
               hold_bytes(values, memories + 3, columns.entry, columns.entries, records.len,
                          &columns.values)) {
        if (columns.names.ends == NULL || columns.values.ends == NULL)
            PyErr_SetString(PyExc_ValueError, "headers have names and values");
        else if (!put_headers(records.buf, (uint8_t *)records.buf + records.len, &columns))
            PyErr_SetString(PyExc_ValueError, "the headers are not where the table has them");
        else
            answer = PyLong_FromSsize_t(columns.entry);
    }
    release(memories, 6);
    PyBuffer_Release(&counts);
    PyBuffer_Release(&at);
    PyBuffer_Release(&records);
    return answer;
}

/* What `scan` looks for, and where it is. */
struct scan {
    const uint8_t *data;
    Py_ssize_t length, position;
    int64_t expected, first_offset, end_offset;
    int reads_records, reads_times;
    Py_ssize_t bytes_max;
    int64_t rows, bytes;
};

static inline uint64_t big_endian(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | *at++;
    return value;
}

/* The row of the batch at the position; 0 if it is cut, or needs a closer look. Its header is that
   of records/batch.py. */
static int scan_batch(struct scan *scan, struct batch *batch)
{
    const uint8_t *at = scan->data + scan->position;
    if (scan->length - scan->position < HEADER_BYTES || at[16] != 2)
        return 0;
    const int64_t length = (int32_t)big_endian(at + 8, 4);
    const int attributes = (int)big_endian(at + 21, 2);
    if (length < HEADER_BYTES - 12 || length > scan->length - scan->position - 12 ||
        attributes & ~(APPEND_TIME_BIT | TRANSACTIONAL_BIT))
        return 0;
    batch->start = scan->position + HEADER_BYTES;
    batch->end = scan->position + 12 + length;
    batch->base_offset = (int64_t)big_endian(at, 8);
    batch->epoch = (int32_t)big_endian(at + 12, 4);
    batch->crc = (int64_t)big_endian(at + 17, 4);
    batch->last_delta = (int32_t)big_endian(at + 23, 4);
    batch->base_timestamp = (int64_t)big_endian(at + 27, 8);
    batch->append_timestamp = HAS_NO_APPEND_TIME;
    if (attributes & APPEND_TIME_BIT)
        batch->append_timestamp = (int64_t)big_endian(at + 35, 8);
    batch->count = (int32_t)big_endian(at + 57, 4);
    if (batch->base_offset < scan->expected || batch->base_offset >= scan->end_offset ||
        batch->base_offset >= OFFSET_LIMIT || batch->last_delta < 0 || batch->count < 1 ||
        batch->count > (batch->end - batch->start) / RECORD_BYTES_MIN)
        return 0;
    batch->from_delta = scan->first_offset - batch->base_offset;
    batch->to_delta = scan->end_offset - batch->base_offset;
    batch->walks = scan->reads_records || batch->count != batch->last_delta + 1 ||
                   (scan->reads_times && !(attributes & APPEND_TIME_BIT));
    return 1;
}

/* scan(data, position, expected, first_offset, end_offset, reads_records, reads_times, bytes_max,
   table): the rows of the batches from `position` on, whose offsets are `expected` at least, until
   the table is full, they have `bytes_max` bytes, or one needs a closer look. Batches before
   `first_offset` have no row. Returns (batches, position, expected, records, bytes). */
static PyObject *scan(PyObject *self, PyObject *arguments)
{
    Py_buffer data, table;
    long long expected, first_offset, end_offset;
    struct scan scan;
    (void)self;
    memset(&scan, 0, sizeof scan);
    if (!PyArg_ParseTuple(arguments, "y*nLLLppnw*:scan", &data, &scan.position, &expected,
                          &first_offset, &end_offset, &scan.reads_records, &scan.reads_times,
                          &scan.bytes_max, &table))
        return NULL;
    struct batch *batches = table.buf;
    Py_ssize_t count = 0, count_max = table.len / (Py_ssize_t)sizeof(struct batch);
    PyObject *answer = NULL;
    if (scan.position < 0 || first_offset < 0 || end_offset < 0 || expected < 0) {
        PyErr_SetString(PyExc_ValueError, "a position or an offset below 0");
    } else {
        scan.data = data.buf;
        scan.length = data.len;
        scan.expected = expected;
        scan.first_offset = first_offset;
        scan.end_offset = end_offset;
        while (count < count_max && scan.bytes < scan.bytes_max &&
               scan.position < scan.length && scan_batch(&scan, batches + count)) {
            const struct batch *batch = batches + count;
            scan.position = (Py_ssize_t)batch->end;
            scan.expected = batch->base_offset + batch->last_delta + 1;
            if (scan.expected <= first_offset)
                continue;
            scan.rows += batch->count;
            scan.bytes += batch->end - batch->start;
            count++;
        }
        answer = Py_BuildValue("(nnLLL)", count, scan.position, (long long)scan.expected,
                               (long long)scan.rows, (long long)scan.bytes);
    }
    PyBuffer_Release(&table);
    PyBuffer_Release(&data);
    return answer;
}

static PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS, "See strandline.spark.decoding.fill."},
    {"fill", fill, METH_VARARGS, "See strandline.spark.decoding.fill."},
    {"fill_headers", fill_headers, METH_VARARGS, "See strandline.spark.decoding.fill."},
    {NULL, NULL, 0, NULL},
};

COMPILED_MODULE(_columns, "See spark/decoding/fill.py.")
