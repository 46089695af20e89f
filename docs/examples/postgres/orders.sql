-- What the shop has, and what it sold. The tables stand in the store's database, so that an order, the stock that it takes
-- and the answer to the customer are written in one transaction.
create table stock (
  item     text primary key,
  in_stock integer not null check (in_stock >= 0)
);
create table orders (
  id        text primary key,
  customer  text not null,
  -- Judged at the end: the order's row is written before the stock's, whose condition says "sold out" for an unknown item, too.
  item      text not null references stock deferrable initially deferred,
  quantity  integer not null check (quantity > 0),
  placed_at timestamptz not null
);
insert into stock values ('book', 1000), ('lamp', 1);
