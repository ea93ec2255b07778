/** Whole seconds since 1970. */
export const epochSeconds = (time: Date): number => Math.floor(time.getTime() / 1000)

export const epochSecondsOrNull = (time: Date | null): number | null => (time === null ? null : epochSeconds(time))
