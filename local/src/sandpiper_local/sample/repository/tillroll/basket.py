"""A basket of goods and what it costs, in whole cents."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    name: str
    price_cents: int
    quantity: int = 1

    @property
    def cents(self) -> int:
        return self.price_cents * self.quantity


@dataclass
class Basket:
    lines: list = field(default_factory=list)

    def add(self, name: str, price_cents: int, quantity: int = 1) -> None:
        if quantity < 1:
            raise ValueError("quantity must be at least 1")
        self.lines.append(Line(name, price_cents, quantity))

    def total_cents(self, discount_percent: int = 0) -> int:
        total = 0
        for line in self.lines:
            discount = line.price_cents * discount_percent // 100
            total += (line.price_cents - discount) * line.quantity
        return total
