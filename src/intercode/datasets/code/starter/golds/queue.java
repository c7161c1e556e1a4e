import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.Scanner;

public class Main {
    record Person(int urgent, int number, String name) {}

    public static void main(String[] arguments) {
        var waiting = new PriorityQueue<Person>(
            Comparator.comparingInt((Person p) -> -p.urgent()).thenComparingInt(Person::number));
        var input = new Scanner(System.in);
        for (int number = 0; input.hasNextLine(); number++) {
            String line = input.nextLine();
            if (line.equals("next")) {
                System.out.println(waiting.isEmpty() ? "nobody" : waiting.poll().name());
            } else {
                String[] parts = line.split(" ", 2);
                waiting.add(new Person(Integer.parseInt(parts[0]), number, parts[1]));
            }
        }
        System.out.println(waiting.size() + " left");
    }
}
