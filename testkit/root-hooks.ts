import { stopTestCluster } from './postgres.ts'

/** Loaded by mocha before every run. */
export const mochaHooks = {
  afterAll: async (): Promise<void> => stopTestCluster(),
}
