/* Reads and writes JSON. Python sends bytes that are not UTF-8 as the surrogates U+DC80 to U+DCFF,
   and the reader turns these back into bytes. The writer sends such bytes unchanged, and Python
   decodes them to surrogates. */

#include "supervisor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 32

struct reader { char *at, *end; };

static struct json *parse_value(struct reader *r, int depth);

static void skip_blanks(struct reader *r) {
    while (r->at < r->end && strchr(" \t\r\n", *r->at)) r->at++;
}

static bool accept(struct reader *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length)) return false;
    r->at += length;
    return true;
}

static long hex4(struct reader *r) {
    long code = 0;
    if (r->end - r->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

static char *encode_utf8(char *out, long code) {
    if (code >= 0xDC80 && code <= 0xDCFF) {
        *out++ = (char)(code - 0xDC00);
    } else if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 63));
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    }
    return out;
}

/* Parse one escape after its backslash. Return NULL for an unknown one. */
static char *parse_escape(struct reader *r, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at >= r->end) return NULL;
    char c = *r->at++;
    const char *found = strchr(from, c);
    if (found && c) {
        *out++ = to[found - from];
        return out;
    }
    long code = c == 'u' ? hex4(r) : -1;
    if (code < 0) return NULL;
    if (code >= 0xD800 && code < 0xDC00 && accept(r, "\\u")) {
        long low = hex4(r);
        if (low < 0xDC00 || low > 0xDFFF) return NULL;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return encode_utf8(out, code);
}

/* Parse a string after its first quote. Decode it in place, because the decoded text is never
   longer. */
static char *parse_string(struct reader *r, size_t *length) {
    char *start = r->at, *out = r->at;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\') {
            r->at++;
            if (!(out = parse_escape(r, out))) return NULL;
        } else {
            *out++ = *r->at++;
        }
    }
    if (r->at >= r->end) return NULL;
    r->at++;
    *out = 0;
    *length = (size_t)(out - start);
    return start;
}

static bool parse_members(struct reader *r, struct json *into, int depth) {
    char close = into->kind == LIST ? ']' : '}';
    struct json **last = &into->first;
    skip_blanks(r);
    if (r->at < r->end && *r->at == close) return r->at++, true;
    for (;;) {
        char *name = NULL;
        size_t length;
        skip_blanks(r);
        if (into->kind == OBJECT) {
            if (!accept(r, "\"") || !(name = parse_string(r, &length))) return false;
            skip_blanks(r);
            if (!accept(r, ":")) return false;
        }
        struct json *member = parse_value(r, depth + 1);
        if (!member) return false;
        member->key = name;
        *last = member;
        last = &member->next;
        into->length++;
        skip_blanks(r);
        if (r->at < r->end && *r->at == close) return r->at++, true;
        if (!accept(r, ",")) return false;
    }
}

static bool parse_into(struct reader *r, struct json *v, int depth) {
    if (accept(r, "\"")) return v->kind = TEXT, (v->text = parse_string(r, &v->length)) != NULL;
    if (accept(r, "[")) return v->kind = LIST, parse_members(r, v, depth);
    if (accept(r, "{")) return v->kind = OBJECT, parse_members(r, v, depth);
    if (accept(r, "null")) return true;
    if (accept(r, "true")) return v->kind = BOOL, v->number = 1, true;
    if (accept(r, "false")) return v->kind = BOOL, true;
    char *end;
    v->kind = NUMBER;
    v->number = strtoll(r->at, &end, 10);
    if (end == r->at) return false;
    if (end < r->end && strchr(".eE", *end)) v->number = (long long)strtod(r->at, &end);
    r->at = end;
    return true;
}

static struct json *parse_value(struct reader *r, int depth) {
    struct json *parsed = calloc(1, sizeof *parsed);
    skip_blanks(r);
    if (parsed && depth < MAX_DEPTH && r->at < r->end && parse_into(r, parsed, depth))
        return parsed;
    json_free(parsed);
    return NULL;
}

/* Parse a document, or return NULL. `bytes` is changed and must have room for a NUL after `length`;
   strings in the result point into it. */
struct json *json_parse(char *bytes, size_t length) {
    struct reader r = {bytes, bytes + length};
    bytes[length] = 0;
    return parse_value(&r, 0);
}

void json_free(struct json *v) {
    while (v) {
        struct json *next = v->next;
        json_free(v->first);
        free(v);
        v = next;
    }
}

const struct json *json_get(const struct json *object, const char *name) {
    const struct json *v = object ? object->first : NULL;
    while (v && (!v->key || strcmp(v->key, name))) v = v->next;
    return v;
}

const char *json_text(const struct json *object, const char *name) {
    const struct json *v = json_get(object, name);
    return v && v->kind == TEXT ? v->text : "";
}

long long json_number(const struct json *object, const char *name) {
    const struct json *v = json_get(object, name);
    return v ? v->number : 0;
}

bool json_bool(const struct json *object, const char *name) {
    return json_number(object, name) != 0;
}

void append(struct text *out, const char *bytes, size_t length) {
    if (out->length + length + 1 > out->capacity) {
        out->capacity = (out->length + length + 1) * 2;
        if (!(out->bytes = realloc(out->bytes, out->capacity))) abort();
    }
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
    out->bytes[out->length] = 0;
}

void append_format(struct text *out, const char *format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    append(out, buffer, (size_t)length < sizeof buffer ? (size_t)length : sizeof buffer - 1);
}

/* Append the inside of a string, with escapes. */
void append_json_text(struct text *out, const char *s) {
    while (*s) {
        size_t plain = 0;
        while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\') plain++;
        append(out, s, plain);
        s += plain;
        if (*s == '"' || *s == '\\') append_format(out, "\\%c", *s++);
        else if (*s) append_format(out, "\\u%04x", *s++);
    }
}

void append_json_string(struct text *out, const char *s) {
    append(out, "\"", 1);
    append_json_text(out, s);
    append(out, "\"", 1);
}

void append_json_strings(struct text *out, const struct json *object) {
    append(out, "{", 1);
    for (const struct json *v = object ? object->first : NULL; v; v = v->next) {
        if (v != object->first) append(out, ", ", 2);
        append_json_string(out, v->key);
        append(out, ": ", 2);
        append_json_string(out, v->text ? v->text : "");
    }
    append(out, "}", 1);
}
