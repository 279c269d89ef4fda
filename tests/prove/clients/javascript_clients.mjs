// Unmodified clients of npm against a server that reverses texts. Prints one line per client: its name, and "right" or
// what went wrong.
import assert from "node:assert";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const key = "secret";

const clients = {
  // The key is called apiKey.
  async libretranslate() {
    const { translate } = require("libretranslate");
    assert.equal(await translate({ query: "123", source: "de", target: "en", apiurl: url, apiKey: key }), "321");
    assert.equal(await translate({ query: "<b>12</b>", target: "en", format: "html", apiurl: url, apiKey: key }), "<b>21</b>");
  },
  // Posts to the address that it is given, with and without a path.
  async translate() {
    const { default: translate } = await import(pathToFileURL(require.resolve("translate")));
    for (const address of [url, `${url}/translate`]) {
      const client = translate.Translate({ engine: "libre", url: address, key });
      assert.equal(await client("123", { from: "de", to: "en" }), "321");
    }
  },
};

for (const [name, client] of Object.entries(clients)) {
  let outcome = "right";
  try {
    await client();
  } catch (error) {
    outcome = String(error.message).replaceAll(/\s+/g, " ").slice(0, 300);
  }
  console.log(`npm ${name}\t${outcome}`);
}
