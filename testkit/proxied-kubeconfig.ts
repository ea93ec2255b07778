import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newTemporaryFolder } from './test-folder.ts'

/** A kubeconfig that leads to an address and signs in to nothing; removed at the end of the run. */
export const kubeconfigTo = (server: string): string => {
  const path = join(newTemporaryFolder(), 'kubeconfig')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'proxied',
    clusters: [{ name: 'proxied', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'nobody', user: {} }],
    contexts: [{ name: 'proxied', context: { cluster: 'proxied', user: 'nobody' } }],
  }
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
  return path
}
