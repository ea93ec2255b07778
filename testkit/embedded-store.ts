/** Databases for the embedded store, cloned from one migrated template a process. */
import { migrateEmbeddedStore } from '../runtime/embedded/embedded-migrations.ts'
import { testCluster } from './postgres.ts'

let template: Promise<string> | undefined

const migratedTemplate = async (): Promise<string> => {
  const cluster = await testCluster()
  const name = await cluster.createDatabase({ owner: 'svc_store' })
  await migrateEmbeddedStore(cluster.url(name, 'svc_store'))
  return name
}

/** The URL of a fresh, migrated database of the role svc_store: give it to EmbeddedResourceStore and SealedCredentials. */
export const storeDatabase = async (): Promise<string> => {
  const cluster = await testCluster()
  const name = await cluster.createDatabase({ template: await (template ??= migratedTemplate()), owner: 'svc_store' })
  return cluster.url(name, 'svc_store')
}
