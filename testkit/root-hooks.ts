import { clearAtEnd } from './at-end.ts'
import { stopTestCluster } from './postgres.ts'
import { removeTestFolders } from './server-files.ts'

/** Loaded by mocha before every run. */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(120_000)
    try {
      await clearAtEnd()
    } finally {
      await stopTestCluster().finally(removeTestFolders)
    }
  },
}
