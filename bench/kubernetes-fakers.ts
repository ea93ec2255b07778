/**
 * Plays pods, volumes, network and Postgres servers on the API-only cluster of SERVICE_TEST_API_KUBECONFIG, as a process of its own, so
 * that what this costs is nobody else's. Prints a line when it began; ends with SIGTERM, and with 1 when something went wrong in it.
 */
import { startClaimFaker } from '../testkit/kubernetes/claim-faker.ts'
import { apiCluster } from '../testkit/kubernetes/cluster.ts'
import { PodFaker } from '../testkit/kubernetes/pod-faker.ts'
import { ServiceFaker } from '../testkit/kubernetes/service-faker.ts'

if (import.meta.main) {
  const cluster = await apiCluster()
  const pods = await PodFaker.start({ api: await cluster.open('pod-faker') })
  const claims = startClaimFaker(await cluster.open('claim-faker'), { node: pods.node })
  const services = ServiceFaker.start(await cluster.open('service-faker'), pods)
  console.log('playing')
  // Whoever measures may be killed: what it played for would be played on, and its addresses taken.
  process.stdin.once('end', () => process.exit(1)).resume()
  process.once('SIGTERM', () => {
    void services.strange().then(strange => {
      const wrong = [...pods.failures, ...claims.failures, ...services.failures, ...strange]
      if (wrong.length > 0) console.error(`The fakers failed ${wrong.length} times, first:`, wrong[0])
      process.exit(wrong.length === 0 ? 0 : 1)
    })
  })
}
