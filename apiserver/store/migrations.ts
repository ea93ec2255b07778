/** Where the migrations of the control-plane database are. */
export const MIGRATIONS_FOLDER = new URL('./migrations/', import.meta.url)
