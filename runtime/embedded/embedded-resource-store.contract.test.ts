import { storeDatabase } from '../../testkit/embedded-store.ts'
import { describeResourceStore } from '../store/resource-store.contract.ts'
import type { ResourceStore } from '../store/resource-store.ts'
import { EmbeddedResourceStore } from './embedded-resource-store.ts'

describeResourceStore('EmbeddedResourceStore', async () => {
  const url = await storeDatabase()
  const stores = new Map<string, EmbeddedResourceStore>()
  const connect = (clientName: string): EmbeddedResourceStore => {
    const store =
      stores.get(clientName) ??
      new EmbeddedResourceStore({ url, clientName, bookmarkEveryMs: 100, pollEveryMs: 60_000 })
    stores.set(clientName, store)
    return store
  }
  let namespaces = 0
  return {
    connect: async (clientName): Promise<ResourceStore> => connect(clientName),
    namespace: async () => `ns-${++namespaces}`,
    expireVersions: async () => {
      await connect('first').compact({ keepMs: 0, keepAtLeast: 0 })
    },
    bookmarkWithinMs: 5000,
    close: async () => {
      await Promise.all([...stores.values()].map(store => store.close()))
    },
  }
})
