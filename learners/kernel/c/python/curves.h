/* Least squares on curves of the features: phi of an instance, the fit, and one step. The formulas are in
   algorithms/auto/least_squares.py; what phi is multiplied by is skipped where phi is 0, which changes no sum. */

#define WAVES 128
#define CURVE_HATS 9

typedef struct {
    double *P, *R;        /* (room, room), symmetric; (room, stride) */
    const double *omega;  /* (features, WAVES) */
    const double *theta;  /* of WAVES */
    const int64_t *places; /* of z_j in phi */
    Py_ssize_t room, width, stride, features, curved; /* width: of phi, without what there is only room for; see `curves_show` */
} Curves;

/* So many of its features have joined. */
static void curves_show(Curves *curves, Py_ssize_t joined) {
    Py_ssize_t last = joined - 1;
    curves->width = last < 0 ? 1 + WAVES : curves->places[last] + 1 + (last < curves->curved ? CURVE_HATS : 0);
}

/* phi of z on rows (numbers of features, `bias` taken off); `size` is S. */
WIDE static void curves_phi(const Curves *curves, const int64_t *rows, const double *z, Py_ssize_t count, Py_ssize_t bias,
                       double size, double *phi) {
    double *turns = phi + 1, pace = (1.5 / TURN) / sqrt(size), height = 2.0 * sqrt(2.0 / WAVES);
    for (Py_ssize_t i = 0; i < curves->width; i++) phi[i] = 0.0;
    phi[0] = 1.0;
    for (Py_ssize_t i = bias; i < count; i++) {
        const double *omega = curves->omega + (rows[i] - bias) * WAVES;
        for (int k = 0; k < WAVES; k++) turns[k] += z[i] * omega[k];
    }
    for (int k = 0; k < WAVES; k++) turns[k] = height * cos_turns_of(turns[k] * pace + curves->theta[k]);
    for (Py_ssize_t i = bias; i < count; i++) {
        double *own = phi + curves->places[rows[i] - bias];
        own[0] = z[i];
        if (rows[i] - bias < curves->curved)
            for (int k = 0; k < CURVE_HATS; k++) {
                double hat = 1.0 - 2.0 * fabs(z[i] - (k * 0.5 - 2.0));
                own[1 + k] = hat > 0.0 ? hat : 0.0;
            }
    }
}

/* out = phi' M over the first `columns` of rows that lie `stride` apart: four rows in one pass, one after the other. */
WIDE static void curves_product(const double *phi, const double *M, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t columns,
                           double *restrict out) {
    for (Py_ssize_t k = 0; k < columns; k++) out[k] = 0.0;
    for (Py_ssize_t i = 0; i < rows;) {
        const double *row[4];
        double f[4];
        int taken = 0;
        for (; i < rows && taken < 4; i++)
            if (phi[i] != 0.0) f[taken] = phi[i], row[taken++] = M + i * stride;
        if (taken == 4)
            for (Py_ssize_t k = 0; k < columns; k++)
                out[k] = (((out[k] + f[0] * row[0][k]) + f[1] * row[1][k]) + f[2] * row[2][k]) + f[3] * row[3][k];
        else
            for (int n = 0; n < taken; n++)
                for (Py_ssize_t k = 0; k < columns; k++) out[k] += f[n] * row[n][k];
    }
}

/* q = P phi, c = 1 / w + phi' q, R <- R + (q / c) miss', P <- P - q q' / c; `q` has room for the width. */
WIDE static void curves_step(Curves *curves, const double *phi, const double *miss, Py_ssize_t labels, double weight, double *q) {
    Py_ssize_t width = curves->width;
    double product = 0.0;
    curves_product(phi, curves->P, width, curves->room, width, q);
    for (Py_ssize_t i = 0; i < width; i++) product += phi[i] * q[i];
    double c = 1.0 / weight + (product > 0.0 ? product : 0.0), a = -1.0 / c;
    for (Py_ssize_t i = 0; i < width; i++) {
        double share = q[i] / c, *restrict row = curves->R + i * curves->stride;
        for (Py_ssize_t k = 0; k < labels; k++) row[k] += share * miss[k];
    }
    for (Py_ssize_t i = 0; i < width; i++) {
        double own = q[i], *restrict row = curves->P + i * curves->room;
        if (own != 0.0)
            for (Py_ssize_t j = 0; j < width; j++) row[j] += a * (own * q[j]);
    }
}
