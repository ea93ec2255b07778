/** Who last changed an object's spec, as far as its managedFields tell. Pure. */

/** One entry of metadata.managedFields. */
export interface ManagedFields {
  readonly manager?: string
  /** To the second. */
  readonly time?: string
  readonly subresource?: string
  readonly fieldsV1?: { readonly 'f:spec'?: object }
}

interface Touch {
  readonly manager: string
  readonly time: string
  /** It made the spec as a whole, and not only fields of one that was there. */
  readonly madeIt: boolean
}

/** Whether b wrote after a. Within one second, whoever made the spec wrote before those who changed fields of it. */
const isLater = (a: Touch, b: Touch): boolean => (a.time === b.time ? a.madeIt || !b.madeIt : a.time < b.time)

/**
 * The manager of the newest change of the spec; undefined when nobody is known. Somebody whose every field others have
 * changed since, or taken away, is no longer listed. A deletion leaves no trace at all.
 */
export const lastManagerOf = (entries: readonly ManagedFields[] = []): string | undefined => {
  let last: Touch | undefined
  for (const { manager, time, subresource, fieldsV1 } of entries) {
    const spec = fieldsV1?.['f:spec']
    if (manager === undefined || time === undefined || spec === undefined || (subresource ?? '') !== '') continue
    const touch = { manager, time, madeIt: '.' in spec }
    if (last === undefined || isLater(last, touch)) last = touch
  }
  return last?.manager
}
