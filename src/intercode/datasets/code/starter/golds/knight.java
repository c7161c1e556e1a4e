import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Scanner;

public class Main {
    static int square(String name) {
        return (name.charAt(0) - 'a') * 8 + name.charAt(1) - '1';
    }

    static int moves(int begin, int end) {
        int[] steps = new int[64];
        Arrays.fill(steps, -1);
        steps[begin] = 0;
        var waiting = new ArrayDeque<Integer>();
        waiting.add(begin);
        while (steps[end] < 0) {
            int here = waiting.remove();
            for (int x = 0; x < 8; x++) {
                for (int y = 0; y < 8; y++) {
                    boolean reached = Math.abs(x - here / 8) * Math.abs(y - here % 8) == 2;
                    if (reached && steps[x * 8 + y] < 0) {
                        steps[x * 8 + y] = steps[here] + 1;
                        waiting.add(x * 8 + y);
                    }
                }
            }
        }
        return steps[end];
    }

    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        while (input.hasNext()) System.out.println(moves(square(input.next()), square(input.next())));
    }
}
