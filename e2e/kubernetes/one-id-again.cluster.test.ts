/** One id, made and deleted again and again: each one is new, and nothing of those before it is found in it. */
import assert from 'node:assert/strict'
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import { secrets } from '../../runtime/kubernetes/core-kinds.ts'
import { everythingIn } from './everything-in.ts'
import { OperatorScene } from './operator-scene.ts'
import { signInBySecret } from './sign-in-by-secret.ts'

const LIVES = 20

describe(`an id that is used ${LIVES} times`, function () {
  this.timeout(240_000)
  let scene: OperatorScene
  before(async function () {
    scene = await OperatorScene.start(this, 'again')
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())

  it('is another environment each time, and leaves nothing', async () => {
    const environment = await scene.prepared()
    const { namespace } = environment.key
    const { objects, api } = scene.faked.cluster
    const everything = async (): Promise<readonly string[]> => [...(await everythingIn(api, namespace)).keys()]
    const lives: { readonly uid: string; readonly own: readonly unknown[] }[] = []
    let project: readonly string[] | undefined
    for (let life = 1; life <= LIVES; life++) {
      // At once: the last one has only just gone.
      await environment.ask('create')
      await scene.done(environment)
      const { uid } = (await environment.get())!.metadata
      const { app } = credentialSecrets.names({ ...environment.key, uid })
      const password = (await objects.get(secrets, { namespace, name: app }))?.data?.['password']
      const claim = await scene.claim(environment)
      await signInBySecret(environment, uid)
      lives.push({ uid, own: [uid, claim?.metadata?.uid, claim?.spec?.volumeName, password] })
      await environment.ask('delete', { deletionPolicy: 'Delete' })
      await scene.done(environment)
      project ??= await scene.until(
        'all has gone',
        everything,
        names => !names.some(name => name.startsWith('Secret ')),
      )
    }
    const own = lives.flatMap(life => life.own)
    assert.ok(own.every(Boolean))
    assert.equal(new Set(own).size, own.length, 'two lives have something in common')
    await scene.until('all of them have gone', everything, names => names.join() === project?.join())
    const records = (await scene.faked.store.list(deletionRecordType, { namespace: scene.faked.namespace })).items
    for (const { uid } of lives) {
      const mine = records.filter(({ spec }) => spec.uid === uid)
      assert.deepEqual(
        mine.map(({ spec }) => [spec.cause.split(':')[0], spec.retained]),
        [['request', false]],
      )
    }
  })
})
