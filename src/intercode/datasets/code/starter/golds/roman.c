#include <ctype.h>
#include <stdio.h>

static int value(int sign) {
    switch (sign) {
    case 'I': return 1;
    case 'V': return 5;
    case 'X': return 10;
    case 'L': return 50;
    case 'C': return 100;
    case 'D': return 500;
    case 'M': return 1000;
    default: return 0;
    }
}

int main(void) {
    long total = 0;
    int before = 0, sign;
    do {
        sign = getchar();
        int now = value(sign);
        total += before < now ? -before : before;
        before = now;
    } while (sign != EOF);
    printf("%ld\n", total);
    return 0;
}
