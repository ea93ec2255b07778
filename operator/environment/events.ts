import type { ResourceKey } from '../../lib/model/resource.ts'

/** Something that people should find in an environment's story. No secrets, no times. */
export interface StoryEvent {
  readonly type: 'Normal' | 'Warning'
  /** One word for machines: `Ready`, `DiskFull`, `CredentialsRotated`. */
  readonly reason: string
  readonly message: string
}

/** The port through which an environment's story is told, where there is somebody to tell. Never throws, never waits. */
export interface Events {
  tell(subject: { readonly key: ResourceKey; readonly uid: string }, event: StoryEvent): void
}
