import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        Map<String, Long> accounts = new HashMap<>();
        Deque<Map<String, Long>> kept = new ArrayDeque<>();
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            switch (input.next()) {
                case "set" -> accounts.put(input.next(), input.nextLong());
                case "get" -> System.out.println(accounts.getOrDefault(input.next(), 0L));
                case "begin" -> kept.push(new HashMap<>(accounts));
                case "move" -> {
                    String source = input.next(), target = input.next();
                    long amount = input.nextLong();
                    if (accounts.getOrDefault(source, 0L) < amount) {
                        System.out.println("refused");
                    } else {
                        accounts.merge(source, -amount, Long::sum);
                        accounts.merge(target, amount, Long::sum);
                    }
                }
                case "commit" -> {
                    if (kept.isEmpty()) System.out.println("nothing begun");
                    else kept.pop();
                }
                case "undo" -> {
                    if (kept.isEmpty()) System.out.println("nothing begun");
                    else accounts = kept.pop();
                }
            }
        }
    }
}
