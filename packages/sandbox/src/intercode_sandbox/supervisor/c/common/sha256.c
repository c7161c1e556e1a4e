/* SHA-256 (FIPS 180-4). */

#include "supervisor.h"

#include <stdio.h>
#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int by) {
    return x >> by | x << (32 - by);
}

/* One round. The caller moves the eight values on, by the order of the names. */
#define ROUND(a, b, c, d, e, f, g, h, i) do { \
    uint32_t one = h + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) \
        + ((e & f) ^ (~e & g)) + constants[i] + w[i]; \
    d += one; \
    h = one + (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) \
        + ((a & b) ^ (a & c) ^ (b & c)); \
} while (0)

static void process_block(uint32_t s[8], const uint8_t *data) {
    uint32_t w[64];
    uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16
             | (uint32_t)data[4 * i + 2] << 8 | data[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) + w[i - 7]
             + (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
    }
    for (int i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t out[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) s[i] += out[i];
}

void sha256_begin(struct sha256 *sha) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(sha, 0, sizeof *sha);
    memcpy(sha->state, start, sizeof start);
}

/* Begin after a number of parts of zeros. What that computes is kept, so it costs nothing again. */
void sha256_begin_after_zeros(struct sha256 *sha, size_t parts) {
    static const uint8_t zeros[64];
    static uint32_t states[MOST_ZERO_PARTS + 1][8];
    static size_t known;
    sha256_begin(sha);
    if (!known) memcpy(states[0], sha->state, sizeof sha->state);
    for (; known < parts; known++) {
        memcpy(states[known + 1], states[known], sizeof *states);
        for (size_t i = 0; i < ZERO_PART / sizeof zeros; i++)
            process_block(states[known + 1], zeros);
    }
    memcpy(sha->state, states[parts], sizeof sha->state);
    sha->length = (uint64_t)parts * ZERO_PART;
}

void sha256_add(struct sha256 *sha, const void *data, size_t length) {
    const uint8_t *at = data;
    sha->length += length;
    while (length) {
        size_t part = sizeof sha->block - sha->used;
        if (part > length) part = length;
        memcpy(sha->block + sha->used, at, part);
        sha->used += part;
        at += part;
        length -= part;
        if (sha->used == sizeof sha->block) {
            process_block(sha->state, sha->block);
            sha->used = 0;
        }
    }
}

void sha256_end(struct sha256 *sha, char hex[65]) {
    uint64_t bits = sha->length * 8;
    uint8_t size[8], padding = 0x80, zero = 0;
    for (int i = 0; i < 8; i++) size[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(sha, &padding, 1);
    while (sha->used != 56) sha256_add(sha, &zero, 1);
    sha256_add(sha, size, 8);
    for (int i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", sha->state[i]);
}
