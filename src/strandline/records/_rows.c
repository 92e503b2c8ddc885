/* Encodes rows of columns as the records of a batch: the fast twin of `spark/writing/row_encode.py`.

   Why:   a sink gets columns of many rows. Python takes about 5 us to make a record of one, this
          takes about 50 ns.
   How:   encode(out, end, rows, delta, base_timestamp, timestamps, keys, values, headers) appends
          the records of these rows to `out` from `end` on, as long as they fit, and returns (rows,
          end). Offset deltas count from `delta`. A column of bytes is (ends: int32, bytes, nulls:
          uint8): row i has the bytes from ends[i] to ends[i + 1]; None for a column of nulls.
          headers: (ends, names, values), of which row i has the entries from ends[i] to ends[i + 1].
          partitions(keys, count, out) writes the partition of each key, -1 for a null.
   Safe:  each index and each end is compared with its buffer before it is used.
   Built: as `_contents.c` is. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "_module.h"

#define REVISION 1 /* Of the results; `row_encode.py` uses a binary of its own revision only. */
#define VARINT_BYTES_MAX 5

struct bytes_column {
    const int32_t *ends;
    const uint8_t *bytes, *nulls;
    Py_ssize_t rows, size;
};

struct field {
    const uint8_t *bytes;
    int64_t length; /* -1 for null. */
};

struct columns {
    struct bytes_column keys, values, names, contents;
    const int32_t *headers_ends;
    Py_ssize_t headers_rows;
    const int64_t *timestamps;
    Py_ssize_t timestamps_rows;
};

struct views {
    Py_buffer held[16];
    int count;
};

static const void *view_of(struct views *views, PyObject *object, Py_ssize_t *length)
{
    Py_buffer *view = views->held + views->count;
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0)
        return NULL;
    views->count++;
    *length = view->len;
    return view->buf;
}

static void release(struct views *views)
{
    while (views->count > 0)
        PyBuffer_Release(&views->held[--views->count]);
}

static int view_column(struct views *views, PyObject *object, struct bytes_column *column)
{
    PyObject *parts[3];
    Py_ssize_t ends, nulls;
    column->ends = NULL;
    if (object == Py_None)
        return 1;
    if (!PyArg_ParseTuple(object, "OOO:column", parts, parts + 1, parts + 2))
        return 0;
    const int32_t *found = view_of(views, parts[0], &ends);
    column->bytes = found == NULL ? NULL : view_of(views, parts[1], &column->size);
    column->nulls = column->bytes == NULL ? NULL : view_of(views, parts[2], &nulls);
    if (column->nulls == NULL)
        return 0;
    column->rows = ends / (Py_ssize_t)sizeof(int32_t) - 1;
    if (column->rows < 0 || nulls < column->rows) {
        PyErr_SetString(PyExc_ValueError, "a column's ends and nulls differ in length");
        return 0;
    }
    column->ends = found;
    return 1;
}

/* 0 if the column does not have the row. */
static int field_at(const struct bytes_column *column, Py_ssize_t row, struct field *field)
{
    field->length = -1;
    field->bytes = NULL;
    if (column->ends == NULL)
        return 1;
    if (row < 0 || row >= column->rows)
        return 0;
    int32_t start = column->ends[row], end = column->ends[row + 1];
    if (start < 0 || end < start || end > column->size)
        return 0;
    if (column->nulls[row])
        return 1;
    field->bytes = column->bytes + start;
    field->length = end - start;
    return 1;
}

static uint8_t *put_varint(uint8_t *at, int64_t value)
{
    uint64_t raw = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    while (raw >= 0x80) {
        *at++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *at++ = (uint8_t)raw;
    return at;
}

static int varint_bytes(int64_t value)
{
    uint64_t raw = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    int count = 1;
    while (raw >>= 7)
        count++;
    return count;
}

static int64_t field_bytes(const struct field *field)
{
    return varint_bytes(field->length) + (field->length > 0 ? field->length : 0);
}

static uint8_t *put_field(uint8_t *at, const struct field *field)
{
    at = put_varint(at, field->length);
    if (field->length > 0) {
        memcpy(at, field->bytes, (size_t)field->length);
        at += field->length;
    }
    return at;
}

struct output {
    uint8_t *at, *limit;
};

/* 1 if the record was appended, 0 if it does not fit, -1 if the columns do not have the row. */
static int put_record(struct output *output, const struct columns *columns, Py_ssize_t row,
                      int64_t delta, int64_t base_timestamp)
{
    struct field key, value, name, content;
    int32_t first = 0, last = 0;
    if (row < 0 || row >= columns->timestamps_rows || !field_at(&columns->keys, row, &key) ||
        !field_at(&columns->values, row, &value))
        return -1;
    int64_t time = (int64_t)((uint64_t)columns->timestamps[row] - (uint64_t)base_timestamp);
    if (columns->headers_ends != NULL) {
        if (row >= columns->headers_rows)
            return -1;
        first = columns->headers_ends[row];
        last = columns->headers_ends[row + 1];
        if (first < 0 || last < first)
            return -1;
    }
    int64_t size = 1 + varint_bytes(time) + varint_bytes(delta) + field_bytes(&key) +
                   field_bytes(&value) + varint_bytes(last - first);
    for (int32_t entry = first; entry < last; entry++) {
        if (!field_at(&columns->names, entry, &name) || name.length < 0 ||
            !field_at(&columns->contents, entry, &content))
            return -1;
        size += field_bytes(&name) + field_bytes(&content);
    }
    if (size > INT32_MAX || size + VARINT_BYTES_MAX > output->limit - output->at)
        return 0;
    uint8_t *at = put_varint(output->at, size);
    *at++ = 0;
    at = put_varint(at, time);
    at = put_varint(at, delta);
    at = put_field(at, &key);
    at = put_field(at, &value);
    at = put_varint(at, last - first);
    for (int32_t entry = first; entry < last; entry++) {
        field_at(&columns->names, entry, &name);
        field_at(&columns->contents, entry, &content);
        at = put_field(at, &name);
        at = put_field(at, &content);
    }
    output->at = at;
    return 1;
}

static int view_headers(struct views *views, PyObject *object, struct columns *columns)
{
    PyObject *parts[3];
    Py_ssize_t length = 0;
    if (object == Py_None)
        return 1;
    if (!PyArg_ParseTuple(object, "OOO:headers", parts, parts + 1, parts + 2) ||
        !view_column(views, parts[1], &columns->names) ||
        !view_column(views, parts[2], &columns->contents))
        return 0;
    columns->headers_ends = view_of(views, parts[0], &length);
    columns->headers_rows = length / (Py_ssize_t)sizeof(int32_t) - 1;
    return columns->headers_ends != NULL;
}

static PyObject *encode(PyObject *self, PyObject *arguments)
{
    Py_buffer out;
    Py_ssize_t end, length = 0, count, done;
    long long delta, base_timestamp;
    PyObject *rows_object, *timestamps, *keys, *values, *headers, *answer = NULL;
    struct columns columns;
    struct views views;
    int is_put = 1;
    (void)self;
    memset(&columns, 0, sizeof columns);
    views.count = 0;
    if (!PyArg_ParseTuple(arguments, "w*nOLLOOOO:encode", &out, &end, &rows_object, &delta,
                          &base_timestamp, &timestamps, &keys, &values, &headers))
        return NULL;
    const int32_t *rows = view_of(&views, rows_object, &length);
    count = length / (Py_ssize_t)sizeof(int32_t);
    if (rows != NULL)
        columns.timestamps = view_of(&views, timestamps, &length);
    columns.timestamps_rows = length / (Py_ssize_t)sizeof(int64_t);
    if (columns.timestamps != NULL && view_column(&views, keys, &columns.keys) &&
        view_column(&views, values, &columns.values) && view_headers(&views, headers, &columns)) {
        if (end < 0 || end > out.len) {
            PyErr_SetString(PyExc_ValueError, "the end is not within the output");
        } else {
            struct output output = {(uint8_t *)out.buf + end, (uint8_t *)out.buf + out.len};
            for (done = 0; done < count; done++) {
                is_put = put_record(&output, &columns, rows[done], delta + done, base_timestamp);
                if (is_put != 1)
                    break;
            }
            if (is_put < 0)
                PyErr_Format(PyExc_ValueError, "the columns do not have row %d", (int)rows[done]);
            else
                answer = Py_BuildValue("(nn)", done,
                                       (Py_ssize_t)(output.at - (uint8_t *)out.buf));
        }
    }
    release(&views);
    PyBuffer_Release(&out);
    return answer;
}

/* Kafka's murmur2; see client/partitioner.py. */
static uint32_t murmur2(const uint8_t *data, uint32_t length)
{
    const uint32_t multiplier = 0x5bd1e995;
    uint32_t value = 0x9747b28c ^ length;
    for (; length >= 4; data += 4, length -= 4) {
        uint32_t word = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                        (uint32_t)data[3] << 24;
        word *= multiplier;
        word ^= word >> 24;
        value = (value * multiplier) ^ (word * multiplier);
    }
    if (length > 2)
        value ^= (uint32_t)data[2] << 16;
    if (length > 1)
        value ^= (uint32_t)data[1] << 8;
    if (length > 0)
        value = (value ^ data[0]) * multiplier;
    value ^= value >> 13;
    value *= multiplier;
    return value ^ value >> 15;
}

static PyObject *partitions(PyObject *self, PyObject *arguments)
{
    Py_buffer out;
    int count;
    PyObject *keys, *answer = NULL;
    struct bytes_column column;
    struct field key;
    struct views views;
    (void)self;
    views.count = 0;
    if (!PyArg_ParseTuple(arguments, "Oiw*:partitions", &keys, &count, &out))
        return NULL;
    Py_ssize_t rows = out.len / (Py_ssize_t)sizeof(int32_t), row = 0;
    int32_t *found = out.buf;
    if (view_column(&views, keys, &column)) {
        for (; count > 0 && row < rows && field_at(&column, row, &key); row++)
            found[row] = key.length < 0 ? -1
                                        : (int32_t)((murmur2(key.bytes, (uint32_t)key.length) &
                                                     0x7fffffff) % (uint32_t)count);
        if (row < rows)
            PyErr_Format(PyExc_ValueError, "the columns do not have row %zd", row);
        else
            answer = Py_NewRef(Py_None);
    }
    release(&views);
    PyBuffer_Release(&out);
    return answer;
}

static PyMethodDef methods[] = {
    {"encode", encode, METH_VARARGS, "See strandline.spark.writing.row_encode."},
    {"partitions", partitions, METH_VARARGS, "See strandline.spark.writing.row_encode."},
    {NULL, NULL, 0, NULL},
};

COMPILED_MODULE(_rows, "See spark/writing/row_encode.py.")
