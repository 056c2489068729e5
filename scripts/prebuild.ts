import { buildControlPlane, KUBERNETES_VERSIONS } from '../test/cluster/build.ts';
import { buildProduct, buildTool } from '../test/operators/build.ts';
import { isTried, PRODUCTS, withNeeds } from '../test/operators/products.ts';

/** Builds what a suite runs, before its limit of time begins: minutes the first time, then cached. */
const BUILDS: Record<string, (say: (line: string) => void) => Promise<unknown>> = {
  'control-planes': async (say) => {
    for (const version of KUBERNETES_VERSIONS) await buildControlPlane(version, say);
  },
  operators: async (say) => {
    await buildTool('render', say);
    for (const product of withNeeds(PRODUCTS.filter((one) => isTried(one)))) {
      // The suite tries it again, and says in the title of its tests what is in the way.
      await buildProduct(product, say).catch((error) => say(`${product.name}: ${error}`));
    }
  },
};

const [name = ''] = process.argv.slice(2);
const build = BUILDS[name];
if (build === undefined) throw new Error(`use one of: ${Object.keys(BUILDS).join(', ')}`);
await build(console.log);
