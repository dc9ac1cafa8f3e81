// Connected clients: their principals, and the tools that they are shown.

import { accessList } from "./access-list.js";
import { path } from "./api.js";
import { fill, h } from "./dom.js";
import { agoTime, number } from "./words.js";

const SHOWS = { direct: "every tool", search: "a menu", nothing: "nothing" };

export function openClients() {
  const title = h("h2", { id: "clients-title", tabindex: "-1" }, "Clients");
  const rest = h("p", { class: "muted" });
  const list = accessList("Clients", ["Client", "Principal", "Sees", "Address", "Connected", "In flight"], {
    where: path("clients"),
    rows({ clients, others, silent }) {
      const more = [others ? `${number(others)} more without a name` : null, silent ? `${number(silent)} silent for 2 minutes` : null].filter(Boolean).join(", ");
      fill(rest, more || (clients.length ? null : "No client is connected."));
      return clients;
    },
    keyOf: (client) => `${client.name} ${client.connectedAt} ${client.transport}`,
    cells: (client) => [
      client.name, client.principal ?? "–",
      [SHOWS[client.shows] ?? client.shows, client.why ? h("span", { class: "muted" }, `: ${client.why}`) : null],
      h("code", null, client.transport === "stdio" ? "stdio" : `/mcp/${client.view}`),
      agoTime(client.connectedAt), number(client.inFlight),
    ],
  });
  list.read();
  return {
    node: h("section", { class: "stack", "aria-labelledby": title.id }, title, list.node, rest),
    refresh: list.refresh,
    close: list.close,
  };
}
