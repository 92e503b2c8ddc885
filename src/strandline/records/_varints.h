/* Kafka's zigzag varints, read behind a comparison with the end. See records/varint.py. */

#ifndef STRANDLINE_VARINTS_H
#define STRANDLINE_VARINTS_H

#include <stdint.h>

/* A zigzag varint of up to 32 bits; 0 if it is cut, or has more than 32 bits. */
static inline int read_varint(const uint8_t **at, const uint8_t *end, int32_t *value)
{
    const uint8_t *p = *at;
    uint32_t raw = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (p >= end)
            return 0;
        uint8_t byte = *p++;
        if (shift == 28 && byte > 0x0f)
            return 0;
        raw |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = (int32_t)((raw >> 1) ^ (0u - (raw & 1)));
            *at = p;
            return 1;
        }
    }
    return 0;
}

/* The same of up to 64 bits. */
static inline int read_varlong(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    const uint8_t *p = *at;
    uint64_t raw = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (p >= end)
            return 0;
        uint8_t byte = *p++;
        if (shift == 63 && byte > 0x01)
            return 0;
        raw |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = (raw >> 1) ^ (0u - (raw & 1));
            *at = p;
            return 1;
        }
    }
    return 0;
}

/* A varint of up to four bytes, still zigzag, where four bytes are readable; 0 for any other. */
static inline int quick_varint(const uint8_t **at, uint32_t *raw)
{
    const uint8_t *p = *at;
    uint32_t value = p[0] & 0x7f;
    if (p[0] < 0x80) {
        *at = p + 1;
    } else if (p[1] < 0x80) {
        value |= (uint32_t)p[1] << 7;
        *at = p + 2;
    } else if (p[2] < 0x80) {
        value |= (uint32_t)(p[1] & 0x7f) << 7 | (uint32_t)p[2] << 14;
        *at = p + 3;
    } else if (p[3] < 0x80) {
        value |= (uint32_t)(p[1] & 0x7f) << 7 | (uint32_t)(p[2] & 0x7f) << 14 |
                 (uint32_t)p[3] << 21;
        *at = p + 4;
    } else {
        return 0;
    }
    *raw = value;
    return 1;
}

#endif
