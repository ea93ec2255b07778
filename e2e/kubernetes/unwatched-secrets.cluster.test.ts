/** Nobody watches Secrets: what happens to those of an environment is found by a look now and then, though nothing else happens. */
import assert from 'node:assert/strict'
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import { secrets } from '../../runtime/kubernetes/core-kinds.ts'
import { everythingIn } from './everything-in.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'
import { signInBySecret } from './sign-in-by-secret.ts'

describe('the Secrets of an environment that nobody touches', function () {
  this.timeout(120_000)
  let scene: OperatorScene
  before(async function () {
    // As short as they can be; else ten minutes, and an hour.
    const often = { SERVICE_OPERATOR_RESYNC_SECONDS: '5', SERVICE_OPERATOR_PROOF_SECONDS: '5' }
    scene = await OperatorScene.start(this, 'secrets', often)
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())

  const namesOf = async (environment: FakedEnvironment): Promise<{ readonly app: string; readonly ops: string }> =>
    credentialSecrets.names({ ...environment.key, uid: (await environment.get())!.metadata.uid })
  const dataOf = async (
    { key }: FakedEnvironment,
    name: string,
  ): Promise<Readonly<Record<string, string>> | undefined> =>
    (await scene.faked.cluster.objects.get(secrets, { namespace: key.namespace, name }))?.data
  const kubectl = ({ key }: FakedEnvironment, ...args: string[]): Promise<string> =>
    scene.kubectl.must(['-n', key.namespace, ...args])
  const worksAgain = async (environment: FakedEnvironment): Promise<void> => {
    const { metadata, status } = (await environment.get())!
    assert.equal(status?.phase, 'ready')
    await signInBySecret(environment, metadata.uid)
  }

  it('come back when the one that programs mount is deleted, with the same password', async () => {
    const environment = await scene.made()
    const { app } = await namesOf(environment)
    const [before, pod] = [await dataOf(environment, app), await scene.podUid(environment)]
    await kubectl(environment, 'delete', 'secret', app)
    assert.deepEqual(
      await scene.until(
        'it is back',
        () => dataOf(environment, app),
        seen => seen !== undefined,
      ),
      before,
    )
    await worksAgain(environment)
    assert.equal(await scene.podUid(environment), pod)
  })

  it('are put right when a value in it is edited', async () => {
    const environment = await scene.made()
    const { app } = await namesOf(environment)
    const before = await dataOf(environment, app)
    const data = { password: Buffer.from('edited').toString('base64') }
    await kubectl(environment, 'patch', 'secret', app, '--type', 'merge', '-p', JSON.stringify({ data }))
    await scene.until(
      'it is put right',
      () => dataOf(environment, app),
      seen => seen?.['password'] === before?.['password'],
    )
    await worksAgain(environment)
    await scene.until(
      'it is told',
      () => scene.told(environment),
      told => told.includes('Normal DriftCorrected'),
    )
  })

  it('are made anew when what is in force is deleted, and that is told', async () => {
    const environment = await scene.made()
    const { app, ops } = await namesOf(environment)
    const before = await dataOf(environment, app)
    await kubectl(environment, 'delete', 'secret', ops)
    await scene.until(
      'there are others',
      () => dataOf(environment, app),
      seen => seen !== undefined && seen['password'] !== before?.['password'],
    )
    await scene.until(
      'it is told',
      () => scene.told(environment),
      told => told.includes('Warning CredentialsRemade'),
    )
    await scene.until(
      'it is well',
      () => scene.reason(environment, 'Ready'),
      reason => reason === 'Ready',
    )
    await worksAgain(environment)
  })

  for (const missing of ['app', 'ops'] as const)
    it(`may be missing when it is deleted: without ${missing}, it goes with all that is its own`, async () => {
      const environment = await scene.made()
      await kubectl(environment, 'delete', 'secret', (await namesOf(environment))[missing])
      await environment.ask('delete', { deletionPolicy: 'Delete' })
      await scene.done(environment)
      const left = async (): Promise<readonly string[]> => [
        ...(await everythingIn(scene.faked.cluster.api, environment.key.namespace)).keys(),
      ]
      await scene.until(
        'nothing is left but what is the project’s',
        left,
        names => !names.some(name => /^(Secret|Pod|StatefulSet|Service|PersistentVolumeClaim) /.test(name)),
      )
    })
})
