import { stopTestCluster } from './postgres.ts'
import { removeTestFolders } from './server-files.ts'

/** Loaded by mocha before every run. */
export const mochaHooks = {
  afterAll: async (): Promise<void> => {
    await stopTestCluster()
    removeTestFolders()
  },
}
